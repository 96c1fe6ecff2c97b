"""Byte-level BPE (GPT-2, Llama 3, Qwen): each byte of a token is written as one printable character.

The alphabet is that of the GPT-2 encoder: printable Latin-1 bytes stand for themselves, the others for U+0100 onwards
in their order. Knows nothing of tokenizers.
"""

from __future__ import annotations

from itertools import chain, count

PRINTABLE = frozenset(chain(range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100)))


def _alphabet() -> dict[str, int]:
    stand_ins = count(0x100)
    return {chr(byte if byte in PRINTABLE else next(stand_ins)): byte for byte in range(0x100)}


BYTE_OF_CHAR = _alphabet()


def decode(token: str) -> bytes:
    """Bytes of one token; a token with any character outside the alphabet is literal text, as the ByteLevel decoder has it."""
    try:
        return bytes(map(BYTE_OF_CHAR.__getitem__, token))
    except KeyError:
        return token.encode()
