"""Mail addresses: `email` and `idn-email`, by the Mailbox rule alone, which has no length limits."""

from __future__ import annotations

from constrained.grammar.formats.abnf import HEXDIG, any_of, exactly, optional, repeated, separated
from constrained.grammar.formats.format import Format

# RFC 6531, section 3.3 (UTF8-non-ascii): every Unicode scalar value from U+0080.
_NON_ASCII = r"\u{80}-\u{D7FF}\u{E000}-\u{10FFFF}"

# RFC 5321, section 4.1.3. Unlike in URIs, leading zeros are allowed, and `::` stands for two groups or more.
_SNUM = any_of("25[0-5]", "2[0-4][0-9]", "[01]?[0-9]?[0-9]")
_IPV4 = separated(_SNUM, r"\.", 4, 4)
_GROUP = HEXDIG + "{1,4}"


def _groups(most: int) -> str:
    return optional(separated(_GROUP, ":", 1, most)) if most else ""


def _groups_before_ipv4(most: int) -> str:
    return repeated(f"{_GROUP}:", 0, most)


_IPV6 = any_of(
    separated(_GROUP, ":", 8, 8),
    *(exactly(f"{_GROUP}:", left - 1) + _GROUP + "::" + _groups(6 - left) for left in range(1, 7)),
    "::" + _groups(6),
    exactly(f"{_GROUP}:", 6) + _IPV4,
    *(exactly(f"{_GROUP}:", left - 1) + _GROUP + "::" + _groups_before_ipv4(4 - left) + _IPV4 for left in range(1, 5)),
    "::" + _groups_before_ipv4(4) + _IPV4,
)
# A General-address-literal needs a tag that IANA knows, and IPv6 is the only one.
_ADDRESS_LITERAL = r"\[" + any_of(_IPV4, "[Ii][Pp][Vv]6:" + _IPV6) + r"\]"


def _mailbox(more: str) -> str:
    """RFC 5321, section 4.1.2; `more` are the characters that RFC 6531 adds to atext, qtextSMTP and sub-domain.

    RFC 6531 adds U-labels to sub-domain without asking a mail server to check them, and the official suite takes any that
    are written in those characters, even where they are not in Unicode's normal form C.
    """
    atom = f"[A-Za-z0-9!#$%&'*+\\-\\/=?\\^_`\\{{|\\}}~{more}]+"
    quoted = any_of(rf"[ !#-\[\]-~{more}]", r"\\[ -~]")
    local_part = any_of(separated(atom, r"\.", 1), f'"{repeated(quoted)}"')
    let_dig = f"[A-Za-z0-9{more}]"
    sub_domain = let_dig + optional(f"[A-Za-z0-9\\-{more}]*{let_dig}")
    domain = separated(sub_domain, r"\.", 1)
    return f"{local_part}@{any_of(domain, _ADDRESS_LITERAL)}"


FORMATS = (
    Format("email", "RFC 5321, section 4.1.2, Mailbox", (_mailbox(""),)),
    Format("idn-email", "RFC 6531, section 3.3, Mailbox", (_mailbox(_NON_ASCII),)),
)
