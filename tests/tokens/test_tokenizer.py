"""The bytes of every token, for each kind of tokenizer: the tokens of a text, joined, are the text; all else is refused."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, GPTSw3Tokenizer, PreTrainedTokenizerFast

from constrained.decode.convert import prepare_default_model
from constrained.errors import VocabularyError
from constrained.tokens import byte_level, sentencepiece
from constrained.tokens.vocabulary import Vocabulary

CORPUS = ['{"name": "Zoë", "tags": ["naïve", "日本"]}', "the cat sat on the mat  \n\t and then the dog barked"] * 4
TEXTS = [
    *CORPUS[:2],
    "",
    " leading",
    "trailing ",
    "  two  blanks ",
    "🎉 \x00\x7f\u00ad\u2028 ÿĀġ ▁ <0x41>",
    '{"é": "\\u00e9\\n"}',
]


def wrap(tokenizer: Tokenizer, **names: str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{"eos_token": "</s>", **names})


def byte_level_bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=["</s>"])
    )
    return tokenizer


def nested_byte_level_bpe() -> Tokenizer:
    """As Llama 3 and Qwen nest it: a regex split, then bytes, inside sequences."""
    tokenizer = byte_level_bpe()
    split = pre_tokenizers.Split(" ", "merged_with_next")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel()])
    return tokenizer


def pieces() -> dict[str, int]:
    names = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *'▁{}":,abcdethé日', "▁t", "th", "▁th", "▁▁"]
    return {name: index for index, name in enumerate(names)}


def sentencepiece_bpe(byte_fallback: bool = True) -> Tokenizer:
    """As Gemma's: blanks become U+2581, no dummy prefix."""
    merges = [("▁", "t"), ("t", "h"), ("▁", "th"), ("▁", "▁")]
    tokenizer = Tokenizer(models.BPE(pieces(), merges, unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def dummy_prefix_bpe() -> Tokenizer:
    """As Llama 2's: one blank before the text, dropped again by the decoder."""
    tokenizer = sentencepiece_bpe()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def unigram(byte_fallback: bool = True) -> Tokenizer:
    scores = [(piece, -float(index)) for piece, index in pieces().items()]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = sentencepiece_bpe().decoder
    return tokenizer


def encoded(tokenizer: PreTrainedTokenizerFast, vocabulary: Vocabulary, text: str) -> bytes:
    return b"".join(vocabulary.token_bytes[token_id] for token_id in tokenizer.encode(text, add_special_tokens=False))


class Built:
    """Each tokenizer and its vocabulary, built once."""

    def __init__(self) -> None:
        self.known: dict[Any, tuple[PreTrainedTokenizerFast, Vocabulary]] = {}

    def get(self, build: Any) -> tuple[PreTrainedTokenizerFast, Vocabulary]:
        if build not in self.known:
            tokenizer = wrap(build())
            self.known[build] = tokenizer, Vocabulary.from_tokenizer(tokenizer)
        return self.known[build]


CACHE = Built()


EXACT = [byte_level_bpe, nested_byte_level_bpe, sentencepiece_bpe, unigram]
SENTENCEPIECE = [sentencepiece_bpe, dummy_prefix_bpe, unigram]


class TestRoundTrip:
    @pytest.mark.parametrize("build", EXACT)
    @given(text=st.sampled_from(TEXTS) | st.text())
    @settings(max_examples=150, deadline=None)
    def test_joined_tokens_are_the_text(self, build: Any, text: str) -> None:
        text = text.replace("</s>", "")
        if build in SENTENCEPIECE:  # whose encoders take these for a blank and for a byte
            text = text.replace("▁", "").replace("<0x", "")
        tokenizer, vocabulary = CACHE.get(build)
        assert encoded(tokenizer, vocabulary, text) == text.encode()

    @pytest.mark.parametrize("text", ["the", "{}", "", " x"])
    def test_a_dummy_prefix_is_one_blank_before_the_text(self, text: str) -> None:
        tokenizer, vocabulary = CACHE.get(dummy_prefix_bpe)
        assert encoded(tokenizer, vocabulary, text) == (b" " + text.encode() if text else b"")

    @pytest.mark.parametrize("build", [*EXACT, dummy_prefix_bpe])
    def test_each_token_is_what_its_decoder_writes(self, build: Any) -> None:
        """After another token, so that a decoder's start of text plays no part."""
        tokenizer, vocabulary = CACHE.get(build)
        anchor = next(token_id for token_id, token in enumerate(vocabulary.token_bytes) if token == b"t")
        checked = 0
        for token_id, token in enumerate(vocabulary.token_bytes):
            if token.isascii() and token:
                assert tokenizer.backend_tokenizer.decode([anchor, token_id]) == "t" + token.decode()
                checked += 1
        assert checked > 100


class TestBytes:
    def test_every_byte_has_its_character(self) -> None:
        assert sorted(byte_level.BYTE_OF_CHAR.values()) == list(range(256))
        assert set(byte_level.BYTE_OF_CHAR) == set(pre_tokenizers.ByteLevel.alphabet())

    def test_blanks_and_letters(self) -> None:
        assert byte_level.decode("ĠtheĊ") == b" the\n"

    def test_a_character_outside_of_the_alphabet_makes_a_token_literal(self) -> None:
        assert byte_level.decode("Ġ ") == "Ġ ".encode()

    @pytest.mark.parametrize(
        ("piece", "expected"),
        [
            ("▁the", b" the"),
            ("a▁▁b", b"a  b"),
            ("<0x0A>", b"\n"),
            ("<0xfF>", b"\xff"),
            ("<0xA>", b"<0xA>"),
            ("a<0x0A>", b"a<0x0A>"),
        ],
    )
    def test_pieces(self, piece: str, expected: bytes) -> None:
        assert sentencepiece.decode(piece) == expected

    @pytest.mark.parametrize("build", SENTENCEPIECE)
    def test_all_byte_pieces_are_single_bytes(self, build: Any) -> None:
        vocabulary = CACHE.get(build)[1]
        assert vocabulary.token_bytes[2:258] == [bytes([byte]) for byte in range(256)]


class TestAddedTokens:
    @pytest.fixture(params=[byte_level_bpe, sentencepiece_bpe])
    def added(self, request: pytest.FixtureRequest) -> tuple[PreTrainedTokenizerFast, Vocabulary, int]:
        backend = request.param()
        first = backend.get_vocab_size()
        backend.add_tokens([AddedToken("<tool>", special=False), AddedToken("Zoë é", special=False, normalized=False)])
        backend.add_special_tokens(["<|im_end|>", "<|pad|>"])
        tokenizer = wrap(backend, eos_token="<|im_end|>", pad_token="<|pad|>")
        return tokenizer, Vocabulary.from_tokenizer(tokenizer), first

    def test_plain_ones_are_their_literal_text(self, added: tuple[Any, Vocabulary, int]) -> None:
        tokenizer, vocabulary, first = added
        assert vocabulary.token_bytes[first : first + 2] == [b"<tool>", "Zoë é".encode()]
        assert encoded(tokenizer, vocabulary, "the <tool>Zoë é") == "the <tool>Zoë é".encode()

    def test_special_ones_are_never_text(self, added: tuple[Any, Vocabulary, int]) -> None:
        tokenizer, vocabulary, first = added
        assert vocabulary.token_bytes[first + 2 :] == [b"", b""]
        assert vocabulary.eos_token_ids == {tokenizer.eos_token_id} == {first + 2}

    def test_special_by_name_alone(self) -> None:
        """A token that only the tokenizer's own names call special."""
        vocabulary = Vocabulary.from_tokenizer(wrap(sentencepiece_bpe(), pad_token="▁th"))
        assert vocabulary.token_bytes[pieces()["▁th"]] == b""

    def test_the_unknown_token_is_no_text(self) -> None:
        assert CACHE.get(sentencepiece_bpe)[1].token_bytes[0] == b""

    def test_more_ends_of_sequence(self) -> None:
        tokenizer = CACHE.get(byte_level_bpe)[0]
        vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[7])
        assert vocabulary.eos_token_ids == {7, tokenizer.eos_token_id}
        assert vocabulary.token_bytes[7] == b""


class TestSize:
    def test_ids_beyond_the_tokenizer_are_padding(self) -> None:
        tokenizer, small = CACHE.get(byte_level_bpe)
        padded = Vocabulary.from_tokenizer(tokenizer, size=small.size + 50)
        assert padded.size == small.size + 50
        assert padded.token_bytes == small.token_bytes + [b""] * 50

    def test_ids_beyond_the_logits_are_dropped(self) -> None:
        tokenizer, full = CACHE.get(byte_level_bpe)
        assert Vocabulary.from_tokenizer(tokenizer, size=100).token_bytes == full.token_bytes[:100]

    def test_an_end_of_sequence_beyond_the_logits_is_refused(self) -> None:
        backend = byte_level_bpe()
        size = backend.get_vocab_size()
        backend.add_special_tokens(["<end>"])
        with pytest.raises(VocabularyError, match=f"end-of-sequence id {size} is outside of 0 to {size - 1}"):
            Vocabulary.from_tokenizer(wrap(backend, eos_token="<end>"), size=size)


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "</s>": 1, "a": 2, "##b": 3}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def word_level() -> Tokenizer:
    return Tokenizer(models.WordLevel({"[UNK]": 0, "</s>": 1}, unk_token="[UNK]"))


def ctc() -> Tokenizer:
    tokenizer = word_level()
    tokenizer.decoder = decoders.CTC()
    return tokenizer


def no_decoder() -> Tokenizer:
    tokenizer = byte_level_bpe()
    tokenizer.decoder = None
    return tokenizer


def word_endings() -> Tokenizer:
    """As CLIP's: bytes, but with a marker at the end of each word."""
    tokenizer = Tokenizer(models.BPE({"a": 0, "a</w>": 1, "</s>": 2}, [], end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def strips_each_piece() -> Tokenizer:
    tokenizer = sentencepiece_bpe()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Strip(" ", 1, 0), decoders.Fuse()]
    )
    return tokenizer


def replaces_more() -> Tokenizer:
    tokenizer = sentencepiece_bpe()
    steps = [decoders.Replace("▁", " "), decoders.Replace("x", "y"), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


class TestRefusals:
    @pytest.mark.parametrize(
        ("build", "named"),
        [
            (word_piece, "WordPiece model without byte fallback, WordPiece decoder"),
            (word_level, "WordLevel model without byte fallback, no decoder"),
            (ctc, "WordLevel model without byte fallback, CTC decoder"),
            (no_decoder, "BPE model without byte fallback, no decoder"),
            (word_endings, "BPE model without byte fallback, ByteLevel decoder, end of word '</w>'"),
            (lambda: unigram(byte_fallback=False), "Unigram model without byte fallback, Replace, ByteFallback, Fuse decoder"),
            (lambda: sentencepiece_bpe(byte_fallback=False), "BPE model without byte fallback"),
            (strips_each_piece, "Replace, ByteFallback, Strip, Fuse decoder"),
            (replaces_more, "Replace, Replace, ByteFallback, Fuse decoder"),
        ],
    )
    def test_the_kind_is_named(self, build: Any, named: str) -> None:
        with pytest.raises(VocabularyError, match="cannot be known exactly") as caught:
            Vocabulary.from_tokenizer(wrap(build()))
        assert named in str(caught.value)
        assert "accepted: byte-level BPE" in str(caught.value)

    def test_a_tokenizer_without_a_backend(self) -> None:
        class Characters:
            eos_token_id = 0

        with pytest.raises(VocabularyError, match="Characters has no backend"):
            Vocabulary.from_tokenizer(Characters())

    def test_no_end_of_sequence(self) -> None:
        with pytest.raises(VocabularyError, match="no end-of-sequence token"):
            Vocabulary.from_tokenizer(PreTrainedTokenizerFast(tokenizer_object=byte_level_bpe()))


class TestSlowSentencePiece:
    @staticmethod
    def build(folder: Any, byte_fallback: bool) -> Any:
        trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
        model = io.BytesIO()
        options = {"model_type": "bpe", "vocab_size": 330, "byte_fallback": byte_fallback, "hard_vocab_limit": False}
        if not byte_fallback:
            options["vocab_size"] = 60
        trainer.train(sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2, **options)
        path = folder / "spiece.model"
        path.write_bytes(model.getvalue())
        return GPTSw3Tokenizer(str(path), eos_token="</s>", unk_token="<unk>", bos_token="<s>", pad_token="<pad>")

    def test_pieces_and_bytes(self, tmp_path: Any) -> None:
        tokenizer = self.build(tmp_path, byte_fallback=True)
        vocabulary = Vocabulary.from_tokenizer(tokenizer)
        text = "the cat sat: 🎉 日本"
        joined = b"".join(vocabulary.token_bytes[token_id] for token_id in tokenizer.sp_model.encode(text))
        assert joined == b" " + text.encode()
        assert all(vocabulary.token_bytes[token_id] == b"" for token_id in tokenizer.all_special_ids)

    def test_without_bytes_it_is_refused(self, tmp_path: Any) -> None:
        with pytest.raises(VocabularyError, match="SentencePiece model without byte fallback"):
            Vocabulary.from_tokenizer(self.build(tmp_path, byte_fallback=False))


@pytest.fixture(scope="module")
def default_model() -> tuple[Any, Vocabulary]:
    tokenizer = AutoTokenizer.from_pretrained(prepare_default_model())
    return tokenizer, Vocabulary.from_tokenizer(tokenizer)


@pytest.mark.model
class TestDefaultModel:
    @pytest.mark.parametrize("text", TEXTS)
    def test_joined_tokens_are_the_text(self, default_model: tuple[Any, Vocabulary], text: str) -> None:
        assert encoded(*default_model, text) == text.encode()

    def test_chat_markers_are_never_text(self, default_model: tuple[Any, Vocabulary]) -> None:
        tokenizer, vocabulary = default_model
        markers = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
        assert [vocabulary.token_bytes[token_id] for token_id in markers] == [b""] * 3
        assert vocabulary.eos_token_ids == {tokenizer.eos_token_id}
