"""The `format` names of JSON Schema as exact sets of strings, each written by the grammar of its RFC.

Knows no automata: a format is patterns in ECMA-262 syntax, and whoever compiles patterns makes a language of them.
`FORMATS` are those of 2020-12 (older drafts have fewer, with the same meaning, but for `OLDER_FORMATS`).
`INEXACT` are the names whose strings no pattern and no table of reasonable size describes: to assert one is refused, with
the reason given here.
"""

from __future__ import annotations

from collections.abc import Mapping

from constrained.grammar.formats import addresses, dates, expressions, identifiers, mail, uris
from constrained.grammar.formats.format import Format, Strings

FORMATS: Mapping[str, Format] = {
    form.name: form for part in (dates, mail, addresses, uris, identifiers, expressions) for form in part.FORMATS
}

# Drafts 4 and 6 know no A-labels: every host name of the plain grammar is one.
OLDER_FORMATS: Mapping[str, Mapping[str, Format]] = {
    draft: {"hostname": addresses.HOSTNAME_OF_RFC_1034} for draft in ("draft4", "draft6")
}

INEXACT: Mapping[str, str] = {
    "idn-hostname": (
        "the length limit of a label holds for its Punycode form, and a label that starts with xn-- must be the Punycode of "
        "a valid one (RFC 5890, section 2.3.2.1): both take computing Punycode, which no automaton does"
    ),
}

__all__ = ["FORMATS", "INEXACT", "OLDER_FORMATS", "Format", "Strings"]
