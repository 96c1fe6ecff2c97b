"""What an operator may choose about the service."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrained.decode.prompt import SchemaPrompt


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one service.

    `model` is a local folder or a hub id; None is the default model. `schema_prompt` tells the model its schema.
    `stall_timeout_s` ends a stream whose reader takes nothing for that long. `heartbeat_s` is the longest silence of a stream.
    """

    model: str | None = None
    schema_prompt: SchemaPrompt = field(default_factory=SchemaPrompt)
    max_batch: int = 16
    max_waiting: int = 256
    max_body_bytes: int = 2 * 1024 * 1024
    heartbeat_s: float = 10.0
    stall_timeout_s: float = 60.0
    chat_coalesce_ms: int = 16
    default_chat_max_tokens: int = 1024
    grammar_cache_size: int = 256
    max_pending_compiles: int = 64
    compile_threads: int = 2
    finished_runs_kept: int = 1024
    responses_kept: int = 1024
    responses_kept_s: float = 3600.0
