"""Internet addresses: `ipv4`, `ipv6`, `hostname`; the numeric ones are parts of the mail and URI formats as well."""

from __future__ import annotations

from constrained.grammar.formats.abnf import ANYTHING, DIGIT, HEXDIG, any_of, exactly, optional, repeated, separated
from constrained.grammar.formats.format import Format, Strings

# RFC 3986, section 3.2.2 (dec-octet). RFC 2673, section 3.2, asks for a decimal number of 0 to 255; many would read one with
# a leading zero as octal, so it is none.
_DEC_OCTET = any_of("[0-9]", "[1-9][0-9]", "1[0-9][0-9]", "2[0-4][0-9]", "25[0-5]")
IPV4 = separated(_DEC_OCTET, r"\.", 4, 4)

_H16 = HEXDIG + "{1,4}"
_LS32 = any_of(f"{_H16}:{_H16}", IPV4)


def _compressed(right: str, most_left: int) -> str:
    """Up to `most_left` groups, the `::`, and `right`."""
    left = optional(separated(_H16, ":", 1, most_left)) if most_left else ""
    return f"{left}::{right}"


# RFC 4291, section 2.2, in the form of RFC 3986, section 3.2.2: the `::` stands for one group or more.
IPV6 = any_of(
    exactly(f"{_H16}:", 6) + _LS32,
    *(_compressed(exactly(f"{_H16}:", 5 - left) + _LS32, left) for left in range(6)),
    _compressed(_H16, 6),
    _compressed("", 7),
)

# RFC 1123, section 2.1 (letters, digits, inner hyphens; a label of 63 at most); 253 is what fits the 255 octets on the
# wire (RFC 1035, section 2.3.4).
_LET_DIG = "[A-Za-z0-9]"
_LABEL = _LET_DIG + optional(repeated("[A-Za-z0-9\\-]", 0, 61) + _LET_DIG)
_NAME = (separated(_LABEL, r"\.", 1), "[^]{1,253}")
_DOTTED_DECIMAL = exactly(f"{DIGIT}+\\.", 3) + f"{DIGIT}+"  # RFC 1123, section 2.1: never a host name
_WITH_A_LABEL = repeated(r"[^.]*\.") + "[Xx][Nn]--" + ANYTHING

HOSTNAME_OF_RFC_1034 = Format("hostname", "RFC 1034, section 3.1, and RFC 1123, section 2.1", _NAME, (_DOTTED_DECIMAL,))

FORMATS = (
    Format("ipv4", "RFC 2673, section 3.2", (IPV4,)),
    Format("ipv6", "RFC 4291, section 2.2", (IPV6,)),
    Format(
        "hostname",
        "RFC 1123, section 2.1, and RFC 5891, section 4.4",
        _NAME,
        (_DOTTED_DECIMAL, _WITH_A_LABEL),
        wider=Strings(_NAME, (_DOTTED_DECIMAL,)),
        why="a label that starts with xn-- must be the Punycode form of a valid label, and an automaton computes no Punycode",
    ),
)
