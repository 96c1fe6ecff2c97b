"""Text that is known before it is generated, in the tokens that the tokenizer itself would choose.

How far the choice holds whatever follows: let `data` be followed by anything. In the tokenisation of the whole, some token
ends at, or goes across, the end of `data`; say that it begins at `p`. Then `data[p:]` begins a token of the vocabulary that
goes on with a byte that may follow, or is empty; and the tokens before `p` are those of `data[:p]` alone, since a
boundary that a whole tokenisation has splits it into two (merges do not cross it; so it is too for the most probable
segmentation, and for the longest match). So what the tokenisations of `data[:p]` have in common, over every such `p`, holds.

That is exact for what a tokenizer's model does. A pre-tokenizer that looks ahead (most take a run of blanks apart by what
stands behind it) is asked too: one text of each kind of character that may follow is tried behind `data`. The history's
tokens are as they are; `data` is spelled as if a token ended before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from constrained.tokens.descent import open_starts
from constrained.tokens.greedy import greedy_tokens
from constrained.tokens.vocabulary import Vocabulary

_NOT_ASCII = ("é", "中", "😀")


class Speller:
    """Spells bytes by the vocabulary's own `encode`; by the longest match where it has none, or where it spells other bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def stable_tokens(self, data: bytes, following: Collection[int]) -> list[int]:
        """The first tokens of `data` that stay the same whatever comes behind it; `following` are the bytes that may.

        None may follow: all of `data` is spelled. What ends inside a character is held back.
        """
        if not following:
            return self.tokens(data)
        cut = _whole(data)
        if cut < len(data):
            data, following = data[:cut], data[cut : cut + 1]
        found = self.tokens(data)
        for other in self._others(data, following):
            if not found:
                break
            found = _common_prefix(found, other)
        return found

    def tokens(self, data: bytes) -> list[int]:
        """All of `data` in tokens."""
        encode = self._vocabulary.encode
        if encode is not None:
            start = next((i for i, byte in enumerate(data) if not _continues(byte)), len(data))
            text = data[start:].decode("utf-8", "ignore")
            found = encode(text)
            if b"".join(map(self._bytes, found)) == data[start:]:
                return greedy_tokens(self._vocabulary.trie, data[:start]) + found
        return greedy_tokens(self._vocabulary.trie, data)

    def _bytes(self, token: int) -> bytes:
        return self._vocabulary.token_bytes[token] if 0 <= token < self._vocabulary.size else b""

    def _others(self, data: bytes, following: Collection[int]) -> Iterator[list[int]]:
        """Tokenisations of the beginning of `data`, each as something that follows would have it."""
        for start in open_starts(self._vocabulary.trie, data, bytes(following)):
            cut = _whole(data[:start])
            before = self.tokens(data[:cut])
            yield before if cut == start else before[:-1]
        if self._vocabulary.encode is not None:
            yield from (self.tokens(data + probe) for probe in _probes(following))


def _probes(following: Collection[int]) -> Iterator[bytes]:
    """One text of each kind that pre-tokenizers tell apart, of those that may follow."""
    kinds: dict[int, int] = {}
    for byte in sorted(following):
        if byte < 0x80:
            kinds.setdefault(_KINDS[byte], byte)
    yield from (bytes([byte]) for byte in kinds.values())
    yield from (text for character in _NOT_ASCII if (text := character.encode())[0] in following)


def _kind(character: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, " ".__eq__, "\r\n".__contains__, str.isspace, "'".__eq__)
    return next((i for i, is_kind in enumerate(tests) if is_kind(character)), len(tests))


_KINDS = tuple(_kind(chr(byte)) for byte in range(0x80))


def _continues(byte: int) -> bool:
    """Whether a byte is inside a character of UTF-8."""
    return byte & 0xC0 == 0x80


def _whole(data: bytes) -> int:
    """The length of `data` without a character that is cut off at its end."""
    for back, byte in enumerate(reversed(data[-3:]), 1):
        if not _continues(byte):
            width = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            return len(data) - back if width > back else len(data)
    return len(data)


def _common_prefix(some: list[int], others: list[int]) -> list[int]:
    length = min(len(some), len(others))
    return some[: next((i for i in range(length) if some[i] != others[i]), length)]
