"""`uuid` and the two kinds of JSON Pointer."""

from __future__ import annotations

from constrained.grammar.formats.abnf import HEXDIG, any_of, exactly, repeated
from constrained.grammar.formats.format import Format

_UUID = "-".join(exactly(HEXDIG, count) for count in (8, 4, 4, 4, 12))
_JSON_POINTER = repeated("/" + repeated(any_of("[^\\/~]", "~[01]")))
_NON_NEGATIVE = any_of("0", "[1-9][0-9]*")

FORMATS = (
    Format("uuid", "RFC 4122, section 3, UUID", (_UUID,)),
    Format("json-pointer", "RFC 6901, section 3", (_JSON_POINTER,)),
    Format(
        "relative-json-pointer",
        "draft-handrews-relative-json-pointer-01, section 3",
        (_NON_NEGATIVE + any_of("#", _JSON_POINTER),),
    ),
)
