"""The inside of JSON strings (RFC 8259 section 7), decoded as it comes: UTF-8, escapes and surrogate pairs over any chunking.

Knows nothing of what the string is for. What it gives out are whole Unicode scalar values; a sequence that a chunk cuts
waits for its rest.
"""

from __future__ import annotations

import codecs
import re

_QUOTE, _BACKSLASH, _U = b'"\\u'
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_SHORT = dict(zip(b'"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))
_HEX = frozenset(b"0123456789abcdefABCDEF")
_UNIT_LEN = 6  # of \uXXXX


class MalformedError(Exception):
    """Bytes that are not JSON; `at` counts from the start of the present chunk, and is negative in an earlier one."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class StringReader:
    """Reads one string after the other, each from behind its opening quote."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._escape = bytearray()  # an escape that has begun, from its backslash; a surrogate pair is one escape
        self.is_between = True  # neither an escape nor a character is under way

    def read(self, data: bytes, at: int) -> tuple[int, str, bool]:
        """From `data[at:]`: where it stopped, the text up to there, and whether the closing quote was passed."""
        end = self._read(data, at)
        self.is_between = not self._escape and not self._utf8.getstate()[0]
        return end

    def _read(self, data: bytes, at: int) -> tuple[int, str, bool]:
        pieces: list[str] = []
        while at < len(data):
            if self._escape:
                pieces.append(self._step_escape(data[at], at))
                at += 1
                continue
            end = _PLAIN.match(data, at).end()  # type: ignore[union-attr]  # it matches the empty run too
            pieces.append(self._decode(data[at:end], at, final=end < len(data)))
            if end < len(data) and data[end] == _QUOTE:
                return end + 1, "".join(pieces), True
            if end < len(data):
                self._begin_escape(data[end], end)
            at = end + 1
        return len(data), "".join(pieces), False

    def _decode(self, run: bytes, at: int, *, final: bool) -> str:
        held = len(self._utf8.getstate()[0])
        try:
            return self._utf8.decode(run, final)
        except UnicodeDecodeError as error:
            raise MalformedError(f"not UTF-8 inside a string: {error.reason}", at - held + error.start) from None

    def _begin_escape(self, byte: int, at: int) -> None:
        if byte != _BACKSLASH:
            raise MalformedError(f"a control character, {bytes([byte])!r}, inside a string must be escaped", at)
        self._escape.append(byte)

    def _step_escape(self, byte: int, at: int) -> str:
        """Takes the next byte of the escape; its character once it is whole, else the empty string."""
        place = len(self._escape) % _UNIT_LEN
        self._escape.append(byte)
        if place == 0 or (place == 1 and byte != _U):
            return self._short_escape(byte, at)
        if place == 1:
            return ""
        if byte not in _HEX:
            raise MalformedError(f"{bytes([byte])!r} is not a hexadecimal digit of a \\u escape", at)
        return self._unit(at) if place == _UNIT_LEN - 1 else ""

    def _short_escape(self, byte: int, at: int) -> str:
        if len(self._escape) > _UNIT_LEN:
            if len(self._escape) == _UNIT_LEN + 1 and byte == _BACKSLASH:
                return ""
            raise MalformedError("a high surrogate is not followed by a \\u escape of a low one", at)
        if byte not in _SHORT:
            raise MalformedError(f"{bytes([byte])!r} does not follow a backslash", at)
        self._escape.clear()
        return _SHORT[byte]

    def _unit(self, at: int) -> str:
        """The character that ends with this UTF-16 code unit; none yet after the first half of a pair."""
        unit = int(self._escape[-4:], 16)
        high = int(self._escape[2:6], 16) if len(self._escape) > _UNIT_LEN else None
        if high is None and 0xD800 <= unit <= 0xDBFF:
            return ""
        if (high is not None) != (0xDC00 <= unit <= 0xDFFF):
            raise MalformedError(f"\\u{unit:04x} does not complete a surrogate pair", at)
        self._escape.clear()
        return chr(unit) if high is None else chr(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00))
