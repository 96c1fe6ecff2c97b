"""What a vocabulary is: bytes by id, ends of sequence, a fingerprint."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from constrained.errors import VocabularyError
from constrained.tokens.vocabulary import Vocabulary


class TestFromBytes:
    def test_the_end_of_sequence_holds_no_bytes(self) -> None:
        vocabulary = Vocabulary.from_bytes([b"a", b"</s>", b"a", b""], [1])
        assert vocabulary.token_bytes == [b"a", b"", b"a", b""]
        assert vocabulary.size == 4

    @pytest.mark.parametrize("token", ["a", None, bytearray(b"a"), 3])
    def test_tokens_are_bytes(self, token: Any) -> None:
        with pytest.raises(VocabularyError, match="token 1 must be bytes, found"):
            Vocabulary.from_bytes([b"a", token], [0])

    @pytest.mark.parametrize("token_id", [2, -1])
    def test_ends_of_sequence_are_ids(self, token_id: int) -> None:
        with pytest.raises(VocabularyError, match=f"{token_id} is outside of 0 to 1"):
            Vocabulary.from_bytes([b"a", b"b"], [token_id])

    @pytest.mark.parametrize("token_id", ["1", 1.0, True, None])
    def test_ends_of_sequence_are_integers(self, token_id: Any) -> None:
        with pytest.raises(VocabularyError, match="must be an integer"):
            Vocabulary.from_bytes([b"a", b"b"], [token_id])

    def test_numpy_ids_are_integers(self) -> None:
        assert Vocabulary.from_bytes([b"a", b"b"], np.array([1])).eos_token_ids == {1}

    def test_at_least_one_end_of_sequence(self) -> None:
        with pytest.raises(VocabularyError, match="at least one id"):
            Vocabulary.from_bytes([b"a"], [])

    def test_frozen(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Vocabulary.from_bytes([b"a"], [0]).token_bytes = []  # type: ignore[misc]

    @pytest.mark.parametrize(("size", "num_words"), [(1, 1), (32, 1), (33, 2), (256, 8), (257, 9)])
    def test_words_of_a_row(self, size: int, num_words: int) -> None:
        assert Vocabulary.from_bytes([b"x"] * size, [0]).num_words == num_words


class TestFingerprint:
    BASE = Vocabulary.from_bytes([b"ab", b"c", b""], [2])

    def test_it_is_stable(self) -> None:
        assert self.BASE.fingerprint == "17d9aa73e44063ad95037c216c025553758a28992498820c5e6223e3d428265b"

    @pytest.mark.parametrize(
        ("token_bytes", "eos"),
        [([b"a", b"bc", b""], [2]), ([b"ab", b"c", b"", b""], [2]), ([b"ab", b"c", b""], [0, 2]), ([b"c", b"ab", b""], [2])],
    )
    def test_whatever_differs_changes_it(self, token_bytes: list[bytes], eos: list[int]) -> None:
        other = Vocabulary.from_bytes(token_bytes, eos)
        assert other.fingerprint != self.BASE.fingerprint
        assert other != self.BASE

    def test_equal_vocabularies_are_one_key(self) -> None:
        again = Vocabulary.from_bytes([b"ab", b"c", b"</s>"], [2])
        assert again == self.BASE
        assert len({again, self.BASE}) == 1
