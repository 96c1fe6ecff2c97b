"""`RawTextStream`: a text that is no JSON, told as one string at the root."""

from __future__ import annotations

import codecs
import json

from constrained.stream.ops import Op
from constrained.stream.parser import DeltaStream


class RawTextStream(DeltaStream):
    """Turns the bytes of a text into the ops of the JSON string that holds it: open, text, and close at the end."""

    def __init__(self) -> None:
        super().__init__(None)
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._opening = b'"'

    def feed(self, data: bytes) -> list[Op]:
        return self._told(self._decoder.decode(data))

    def finish(self) -> list[Op]:
        return [*self._told(self._decoder.decode(b"", final=True)), *super().feed(b'"'), *super().finish()]

    def _told(self, text: str) -> list[Op]:
        opening, self._opening = self._opening, b""
        return super().feed(opening + json.dumps(text, ensure_ascii=False)[1:-1].encode())
