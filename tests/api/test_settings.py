"""Settings: flags over environment over file, and a clear error for what is wrong in any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.settings import Settings, load_settings
from constrained.errors import OptionError


def test_defaults() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.api_keys, settings.cors_origins) == ("127.0.0.1", 8000, None, ())


def test_flags_weigh_more_than_the_environment_and_that_more_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "constrained.toml"
    file.write_text('port = 1\nmax_batch = 1\nheartbeat_s = 1\ncors_origins = ["https://a.example"]\n', "utf-8")
    monkeypatch.setenv("CONSTRAINED_PORT", "2")
    monkeypatch.setenv("CONSTRAINED_MAX_BATCH", "2")
    monkeypatch.setenv("CONSTRAINED_SCHEMA_PROMPT", '{"template": "Follow {schema}"}')
    settings = load_settings(file, port=3, max_waiting=None)
    assert (settings.port, settings.max_batch, settings.heartbeat_s) == (3, 2, 1.0)
    assert settings.cors_origins == ("https://a.example",)
    assert settings.schema_prompt.template == "Follow {schema}"
    assert settings.max_waiting == Settings().max_waiting


def test_a_table_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "constrained.toml"
    file.write_text('[schema_prompt]\ntemplate = "By {schema}"\n', "utf-8")
    assert load_settings(file).schema_prompt.template == "By {schema}"


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("port = 99999", "port"),
        ('port = "x"', "port"),
        ("nonsense = 1", "nonsense"),
        ('log_level = "loud"', "log_level"),
        ("tls_key = 'key.pem'", "settings"),
        ("port = ", "config"),
        ("max_batch = 0", "max_batch"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, text: str, option: str) -> None:
    file = tmp_path / "constrained.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(OptionError) as refusal:
        load_settings(file)
    assert refusal.value.option == option


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot read"):
        load_settings(tmp_path / "none.toml")


def test_what_is_wrong_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSTRAINED_MAX_BATCH", "many")
    with pytest.raises(OptionError) as refusal:
        load_settings()
    assert refusal.value.option == "max_batch"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]
