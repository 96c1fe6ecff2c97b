"""What an operator may choose about the service: by flags, by the environment, by a TOML file, in this order of weight."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from api.run_settings import RunSettings
from constrained.decode.prompt import SchemaPrompt
from constrained.errors import OptionError
from constrained.options import Limits

ENV_PREFIX = "CONSTRAINED_"


class Settings(BaseSettings):
    """Settings of one service. In the environment `max_batch` is `CONSTRAINED_MAX_BATCH`; a member of a table is behind `__`.

    `model` is a local folder or a hub id; None is the default model. `dtype` None is what the machine computes best; int8 is of
    weights alone. `speculate` tokens are guessed ahead, 0 none: by looking them up in prompt and output, or by `draft_model`, a
    smaller model of the same vocabulary. `schema_prompt` tells the model its schema.
    `compile_limits` bound each compile, and no request can widen them.
    `stall_timeout_s` ends a stream whose reader takes nothing for that long. `heartbeat_s` is the longest silence of a stream.
    `shutdown_grace_s` is what running streams are given to finish once the service is told to stop.

    `api_keys` is a file of hashed keys (`constrained key`); without it everyone is let in. The limits hold for each key, or
    without keys for each address; a key's own limits come first; 0 is no limit. `cors_origins` may hold "*".
    `log_prompts` writes prompts into the log, where none is otherwise. `otlp_endpoint` takes traces (extra `otel`).
    """

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_key_password: str | None = None
    tls_client_ca: Path | None = None
    trusted_proxies: str = "127.0.0.1"
    root_path: str = ""
    cors_origins: tuple[str, ...] = ()
    shutdown_grace_s: float = Field(default=20.0, ge=0)

    api_keys: Path | None = None
    requests_per_minute: int = Field(default=0, ge=0)
    concurrent_requests: int = Field(default=0, ge=0)
    max_body_bytes: int = Field(default=2 * 1024 * 1024, ge=1)
    max_schema_bytes: int = Field(default=512 * 1024, ge=1)

    log_level: Literal["error", "warning", "info", "debug"] = "warning"
    log_format: Literal["text", "json"] = "text"
    log_prompts: bool = False
    otlp_endpoint: str | None = None

    model: str | None = None
    dtype: Literal["float32", "bfloat16", "float16", "int8", "auto"] | None = None
    speculate: int = Field(default=0, ge=0, le=15)
    draft_model: str | None = None
    prefix_caching: bool = True
    cuda_graphs: bool = True
    schema_prompt: SchemaPrompt = Field(default_factory=SchemaPrompt)
    max_batch: int = Field(default=16, ge=1)
    max_waiting: int = Field(default=256, ge=0)
    default_chat_max_tokens: int = Field(default=1024, ge=1)

    heartbeat_s: float = Field(default=10.0, gt=0)
    stall_timeout_s: float = Field(default=60.0, gt=0)
    chat_coalesce_ms: int = Field(default=16, ge=0)
    compile_limits: Limits = Field(default_factory=Limits)
    grammar_cache_size: int = Field(default=256, ge=1)
    max_pending_compiles: int = Field(default=64, ge=1)
    compile_threads: int = Field(default=2, ge=1)
    finished_runs_kept: int = Field(default=1024, ge=0)
    runs: RunSettings = Field(default_factory=RunSettings)
    responses_kept: int = Field(default=1024, ge=0)
    responses_kept_s: float = Field(default=3600.0, ge=0)

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Settings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(file: Path | None = None, **flags: Any) -> Settings:
    """The settings of flags (None is one not given), of the environment and of a TOML file. Raises `OptionError`."""
    given = {name: value for name, value in flags.items() if value is not None}
    if file is None:
        return _made(Settings, given)
    try:
        tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror}", "config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{file} is not TOML: {error}", "config") from error

    class FileSettings(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    return _made(FileSettings, given)


def _made(kind: type[Settings], given: dict[str, Any]) -> Settings:
    try:
        return kind(**given)
    except ValidationError as error:
        fault = error.errors()[0]
        option = ".".join(map(str, fault["loc"])) or "settings"
        message = (
            "this setting is unknown" if fault["type"] == "extra_forbidden" else fault["msg"].removeprefix("Value error, ")
        )
        raise OptionError(message, option) from error
