"""SentencePiece with byte fallback (Llama 2, Gemma): U+2581 is a blank, `<0xAB>` is one byte, all else is literal text.

The dummy prefix belongs to the encoder, not to the token: `▁Hello` is `b" Hello"` wherever it stands. A decoder that drops
the first blank of a whole text does not concern a document, which begins in the middle of one.
"""

from __future__ import annotations

import re

BLANK = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def decode(piece: str) -> bytes:
    """Bytes of one piece."""
    if match := _BYTE_PIECE.fullmatch(piece):
        return bytes.fromhex(match[1])
    return piece.replace(BLANK, " ").encode()
