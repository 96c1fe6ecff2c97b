"""`DeltaStream`: the bytes of one JSON document in, in any chunks, its typed ops out.

Theory of operation. The parser is a pushdown automaton. Its state is the bound method that reads the next bytes (`_value`,
`_key`, `_number`, ...); each takes the chunk and a place in it and returns the place where it stopped. Its stack is the
cursor's, one frame per open container. Nothing is read twice and nothing is joined before it is whole, so a chunk costs what
its own bytes and the ops that it causes cost.

A scalar is set at its end; where the schema leaves finitely many values, as soon as its bytes leave one of them. Does no I/O,
and knows neither tokens nor grammars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from constrained.errors import InternalError, StreamError
from constrained.guide import Location
from constrained.stream.cursor import Cursor
from constrained.stream.enums import Candidates, NumberCandidates
from constrained.stream.fold import Fold
from constrained.stream.numbers import read_number
from constrained.stream.ops import Op, Scalar
from constrained.stream.strings import MalformedError, StringReader

_SPACE = re.compile(rb"[ \t\n\r]*")
_PLAIN_TEXT = re.compile(rb"[ !#-\[\]-\x7e]+")  # most of what a model writes into a string
_NUMBER_RUN = re.compile(rb"[-+.0-9eE]*")
_COMMA, _QUOTE, _COLON, _OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET, _MINUS = b',":{}[]-'
_LITERALS: dict[int, tuple[bytes, bool | None]] = {
    ord("t"): (b"true", True),
    ord("f"): (b"false", False),
    ord("n"): (b"null", None),
}
_TYPES: dict[int, tuple[str, ...]] = {
    **dict.fromkeys(b"-0123456789", ("integer", "number")),
    **dict.fromkeys(b"tf", ("boolean",)),
    ord("n"): ("null",),
    _QUOTE: ("string",),
    _OPEN_BRACE: ("object",),
    _OPEN_BRACKET: ("array",),
}

State = Callable[[bytes, int], int]


class DeltaStream:
    """Turns one document into ops. `root` is what its schema says of it; None where no schema is known. Not thread-safe."""

    def __init__(self, root: Location | None = None) -> None:
        self._cursor = Cursor(root)
        self._state: State = self._value
        self._base = 0
        self._began = 0  # the offset of the value or key that is being read
        self._reader = StringReader()
        self._pieces: list[str] = []  # of a key or a number: all; of a string: those of this chunk
        self._candidates: Candidates | NumberCandidates | None = None
        self._is_in_text = False  # inside a string whose text is told as it comes
        self._is_set = False
        self._scalar: Scalar = None
        self._literal = b""
        self._literal_len = 0

    @property
    def fold(self) -> Fold:
        """The fold of every op given out so far; to be read, not written."""
        return self._cursor.fold

    @property
    def value(self) -> Any:
        """The document so far (live, see `Fold.value`)."""
        return self.fold.value

    @property
    def open_paths(self) -> tuple[str, ...]:
        """The open paths, from the root inwards."""
        return self.fold.open_paths

    @property
    def is_complete(self) -> bool:
        """Whether the document's text is whole. Of a number at the root only `finish()` tells."""
        return self._cursor.frame is None and self._state == self._after_value

    def feed(self, data: bytes) -> list[Op]:
        """The ops that the next bytes cause. `StreamError` where they are not JSON; the stream then takes nothing more."""
        if self._is_in_text and self._reader.is_between and _PLAIN_TEXT.fullmatch(data):
            self._base += len(data)
            return self._cursor.text_alone(data.decode("ascii"))
        at = 0
        with self._guard():
            while at < len(data):
                at = self._state(data, at)
            self._flush_text()
        self._base += len(data)
        return self._cursor.drain()

    def finish(self) -> list[Op]:
        """Ends a whole document: a number at the root is set now. `StreamError` where the document is not whole.

        A document that was cut has no end to declare: do not call this, and see `open_paths`.
        """
        with self._guard():
            if self._state == self._number and self._cursor.frame is None:
                self._end_number()
            if not self.is_complete:
                raise MalformedError(f"the document ends early; open are {list(self.open_paths)}", 0)
        return self._cursor.drain()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Every failure ends the stream, and says at which byte."""
        try:
            yield
        except MalformedError as error:
            self._die()
            raise StreamError(str(error), self._base + error.at) from None
        except InternalError as error:
            self._die()
            raise StreamError(str(error), self._began) from error

    def _die(self) -> None:
        self._state, self._is_in_text = self._dead, False

    def _dead(self, data: bytes, at: int) -> int:
        raise MalformedError("the stream has failed before", at)

    # Values and containers

    def _value(self, data: bytes, at: int) -> int:
        at = _skip_space(data, at)
        if at == len(data):
            return at
        byte = data[at]
        if byte not in _TYPES:
            raise MalformedError(f"{data[at : at + 1]!r} does not begin a value", at)
        self._began = self._base + at
        self._is_set = False
        self._cursor.begin(_TYPES[byte])
        return self._begin(byte, at)

    def _begin(self, byte: int, at: int) -> int:
        """Enters the state that reads the value; returns the place of the first byte that this state wants."""
        if byte in _LITERALS:
            self._begin_literal(byte)
            return at
        if byte == _QUOTE:
            self._begin_string()
        elif byte in (_OPEN_BRACE, _OPEN_BRACKET):
            self._cursor.open_container(is_object=byte == _OPEN_BRACE)
            self._state = self._first_key if byte == _OPEN_BRACE else self._first_item
        else:
            self._begin_number(byte)
            return at
        return at + 1

    def _after_value(self, data: bytes, at: int) -> int:
        at = _skip_space(data, at)
        if at == len(data):
            return at
        frame = self._cursor.frame
        if frame is None:
            raise MalformedError(f"{data[at : at + 1]!r} after the end of the document", at)
        if data[at] == (_CLOSE_BRACE if frame.is_object else _CLOSE_BRACKET):
            self._close_container()
        elif data[at] != _COMMA:
            raise MalformedError(f"',' or the end of the {frame.kind} is expected, {data[at : at + 1]!r} was found", at)
        elif frame.is_object:
            self._state = self._next_key
        else:
            self._begin_item()
        return at + 1

    def _close_container(self) -> None:
        self._cursor.close_container()
        self._state = self._after_value

    def _first_item(self, data: bytes, at: int) -> int:
        at = _skip_space(data, at)
        if at == len(data):
            return at
        if data[at] == _CLOSE_BRACKET:
            self._close_container()
            return at + 1
        self._begin_item()
        return at

    def _begin_item(self) -> None:
        self._cursor.next_item()
        self._state = self._value

    # Keys

    def _first_key(self, data: bytes, at: int) -> int:
        return self._begin_key(data, at, may_close=True)

    def _next_key(self, data: bytes, at: int) -> int:
        return self._begin_key(data, at, may_close=False)

    def _begin_key(self, data: bytes, at: int, *, may_close: bool) -> int:
        at = _skip_space(data, at)
        if at == len(data):
            return at
        if data[at] == _CLOSE_BRACE and may_close:
            self._close_container()
        elif data[at] == _QUOTE:
            self._began = self._base + at
            self._state = self._key
        else:
            raise MalformedError(f"a key{' or }' if may_close else ''} is expected, {data[at : at + 1]!r} was found", at)
        return at + 1

    def _key(self, data: bytes, at: int) -> int:
        at, text, closed = self._reader.read(data, at)
        self._pieces.append(text)
        if closed:
            self._cursor.next_member(self._take_pieces())
            self._state = self._colon
        return at

    def _colon(self, data: bytes, at: int) -> int:
        at = _skip_space(data, at)
        if at == len(data):
            return at
        if data[at] != _COLON:
            raise MalformedError(f"':' is expected after a key, {data[at : at + 1]!r} was found", at)
        self._state = self._value
        return at + 1

    # Strings

    def _begin_string(self) -> None:
        index = self._cursor.enum
        if index is None:
            self._cursor.open_string()
            self._state = self._string
            self._is_in_text = True
        else:
            self._candidates = index.strings()
            self._state = self._enum_string
            self._set_if_decided()

    def _string(self, data: bytes, at: int) -> int:
        at, text, closed = self._reader.read(data, at)
        self._pieces.append(text)
        if closed:
            self._flush_text()
            self._is_in_text = False
            self._cursor.close_string()
            self._end_value()
        return at

    def _flush_text(self) -> None:
        if self._pieces and self._is_in_text and (text := self._take_pieces()):
            self._cursor.text(text)

    def _enum_string(self, data: bytes, at: int) -> int:
        candidates = self._candidates
        assert isinstance(candidates, Candidates), "an enum's string has candidates"
        at, text, closed = self._reader.read(data, at)
        candidates.advance(text)
        if candidates.count == 0 or (closed and not candidates.is_whole):
            raise InternalError(f"the string at {self._cursor.path!r} is no value of its enum")
        if closed:
            self._end_scalar(candidates.first)
        else:
            self._set_if_decided()
        return at

    # Numbers and literals

    def _begin_number(self, byte: int) -> None:
        index = self._cursor.enum
        self._candidates = None if index is None else index.numbers(negative=byte == _MINUS)
        self._state = self._number

    def _number(self, data: bytes, at: int) -> int:
        run = _NUMBER_RUN.match(data, at)
        piece = "" if run is None else run[0].decode("ascii")
        self._pieces.append(piece)
        if self._candidates is not None:
            self._candidates.advance(piece.lstrip("-"))
            self._set_if_decided()
        if at + len(piece) < len(data):
            self._end_number()
        return at + len(piece)

    def _end_number(self) -> None:
        lexeme, index = self._take_pieces(), self._cursor.enum
        try:
            value, raw = read_number(lexeme)
        except ValueError as error:
            raise InternalError(str(error)) from None
        if index is not None and value not in index:
            raise InternalError(f"the number {lexeme} at {self._cursor.path!r} is no value of its enum")
        self._end_scalar(value, raw)

    def _begin_literal(self, byte: int) -> None:
        self._literal, value = _LITERALS[byte]
        self._literal_len = 0
        self._state = self._in_literal
        index = self._cursor.enum
        if index is None:
            return
        if value not in index:
            raise InternalError(f"{self._literal!r} at {self._cursor.path!r} is no value of its enum")
        self._set(value)

    def _in_literal(self, data: bytes, at: int) -> int:
        word, known = self._literal, self._literal_len
        piece = data[at : at + len(word) - known]
        if not word.startswith(piece, known):
            raise InternalError(f"{(word[:known] + piece)!r} where {word!r} is expected")
        self._literal_len += len(piece)
        if self._literal_len == len(word):
            self._end_scalar(_LITERALS[word[0]][1])
        return at + len(piece)

    # The ends of values

    def _set(self, value: Scalar, raw: str | None = None) -> None:
        """Sets the scalar, whose text may still go on."""
        self._is_set, self._scalar = True, value
        self._cursor.set(value, raw)

    def _set_if_decided(self) -> None:
        candidates = self._candidates
        if candidates is not None and candidates.count == 1 and not self._is_set:
            value = candidates.first
            self._set(value, None if isinstance(value, str) else read_number(repr(value))[1])

    def _end_scalar(self, value: Scalar, raw: str | None = None) -> None:
        if not self._is_set:
            self._set(value, raw)
        elif self._scalar != value:
            raise InternalError(f"{value!r} at {self._cursor.path!r}, where the grammar left only {self._scalar!r}")
        self._candidates = None
        self._end_value()

    def _end_value(self) -> None:
        self._cursor.foresee()
        self._state = self._after_value

    def _take_pieces(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return text


def _skip_space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return at if match is None else match.end()
