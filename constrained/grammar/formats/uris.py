"""URIs, IRIs, references to them, and URI templates."""

from __future__ import annotations

from constrained.grammar.formats.abnf import ALPHA, DIGIT, HEXDIG, any_of, exactly, optional, repeated, separated
from constrained.grammar.formats.addresses import IPV6
from constrained.grammar.formats.format import Format

_PCT_ENCODED = "%" + exactly(HEXDIG, 2)
_SUB_DELIMS = "!$&'()*+,;="

_PLANES = "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
_UCSCHAR = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}" + _PLANES + r"\u{E1000}-\u{EFFFD}"
_IPRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
# RFC 3987, section 4.1: an IRI must not hold U+200E, U+200F, U+202A to U+202E, which direct bidirectional text.
_UCSCHAR_OF_IRIS = _UCSCHAR.replace(r"\u{A0}-\u{D7FF}", r"\u{A0}-\u{200D}\u{2010}-\u{2029}\u{202F}-\u{D7FF}")


def _run(characters: str, low: int = 0) -> str:
    return repeated(any_of(f"[{characters}]", _PCT_ENCODED), low)


def _reference(more: str, private: str) -> tuple[str, str]:
    """The rules `URI` and `URI-reference` of RFC 3986, appendix A.

    `more` are the characters that RFC 3987 adds to `unreserved`, `private` those that it adds to the query.
    """
    unreserved = rf"A-Za-z0-9\-._~{more}"
    registered = unreserved + _SUB_DELIMS
    pchar = registered + ":@"
    ip_future = f"[Vv]{HEXDIG}+\\.[A-Za-z0-9\\-._~{_SUB_DELIMS}:]+"
    # An IPv4address is a reg-name as well.
    host = any_of(rf"\[{any_of(IPV6, ip_future)}\]", _run(registered))
    authority = optional(_run(registered + ":") + "@") + host + optional(f":{DIGIT}*")
    more_segments = repeated("/" + _run(pchar))
    rooted = ["//" + authority + more_segments, "/" + optional(_run(pchar, 1) + more_segments)]
    hier_part = any_of(*rooted, _run(pchar, 1) + more_segments, "")
    relative_part = any_of(*rooted, _run(registered + "@", 1) + more_segments, "")
    fragment = pchar + r"\/?"
    tail = optional(r"\?" + _run(fragment + private)) + optional("#" + _run(fragment))
    absolute = f"{ALPHA}[A-Za-z0-9+\\-.]*:{hier_part}{tail}"
    return absolute, any_of(absolute, relative_part + tail)


def _template() -> str:
    """The rule `URI-Template` of RFC 6570, section 2, with erratum 6937: an apostrophe is a literal."""
    literal = any_of(rf"[!#$&-;=?-\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]", _PCT_ENCODED)
    varchar = any_of("[A-Za-z0-9_]", _PCT_ENCODED)
    varname = varchar + repeated(r"\.?" + varchar)
    varspec = varname + optional(any_of(":[1-9][0-9]{0,3}", r"\*"))
    expression = rf"\{{[+#.\/;?&=,!@|]?{separated(varspec, ',', 1)}\}}"
    return repeated(any_of(literal, expression))


_URI, _URI_REFERENCE = _reference("", "")
_IRI, _IRI_REFERENCE = _reference(_UCSCHAR_OF_IRIS, _IPRIVATE)

FORMATS = (
    Format("uri", "RFC 3986, appendix A, URI", (_URI,)),
    Format("uri-reference", "RFC 3986, appendix A, URI-reference", (_URI_REFERENCE,)),
    Format("iri", "RFC 3987, sections 2.2 and 4.1, IRI", (_IRI,)),
    Format("iri-reference", "RFC 3987, sections 2.2 and 4.1, IRI-reference", (_IRI_REFERENCE,)),
    Format("uri-template", "RFC 6570, section 2, URI-Template", (_template(),)),
)
