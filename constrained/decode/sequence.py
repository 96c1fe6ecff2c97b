"""One sequence's life in the engine: its tokens, its place in the grammar, its blocks, its clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from constrained.decode.blocks import BlockTable
from constrained.decode.request import FinishReason, SamplingParams, Usage
from constrained.decode.seeds import SeededStream
from constrained.decode.shaping import LogitShaper
from constrained.decode.stops import StopText


class MaskRowLike(Protocol):
    """A row of allowed tokens: one `id` per distinct content, `words` int32 [num_words]."""

    @property
    def id(self) -> int: ...

    @property
    def words(self) -> Any: ...


class MatcherLike(Protocol):
    """What the engine asks of a sequence's position in its grammar (see docs/architecture.md)."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def is_terminated(self) -> bool: ...

    @property
    def min_tokens_to_end(self) -> int: ...

    def mask_row(self) -> MaskRowLike: ...

    def accept_token(self, token_id: int, /) -> bool: ...

    def accept_bytes(self, data: bytes, /) -> bool: ...

    def rollback(self, n: int, /) -> None: ...

    def closing_token(self) -> int: ...

    def forced_tokens(self) -> list[int]: ...


class GrammarLike(Protocol):
    """What the engine asks of a compiled grammar."""

    @property
    def vocabulary(self) -> Any: ...

    @property
    def min_tokens(self) -> int: ...

    def matcher(self) -> MatcherLike: ...


class ThinkingLike(Protocol):
    """Work on a sequence's masks that is under way on another thread."""

    def done(self) -> bool: ...

    def wait(self) -> None: ...


@dataclass(slots=True, eq=False)
class Sequence:
    """`tokens` are what the model sees, prompt and output; the KV cache holds the first `num_computed` of them, in `table`.

    `open_row` is the mask of free text while `min_tokens` holds its end back. `tokens_to_end` is the grammar's bound at the
    present position, None before it was first asked. `thinking` is the work on its masks that a step did not wait for.
    `arrival` and `num_overtaken` decide its turn. `owner` is whoever receives its chunks; the engine only hands it back.
    `is_cancelled` may be set by any thread.
    """

    tokens: list[int]
    params: SamplingParams
    max_tokens: int
    matcher: MatcherLike | None
    stream: SeededStream
    owner: Any = None
    shaper: LogitShaper | None = None
    stop: StopText | None = None
    open_row: MaskRowLike | None = None
    num_output: int = 0
    num_computed: int = 0
    tokens_to_end: int | None = None
    table: BlockTable = field(default_factory=BlockTable)
    usage: Usage = field(default_factory=Usage)
    thinking: ThinkingLike | None = None
    arrival: int = 0
    num_overtaken: int = 0
    was_admitted: bool = False
    is_cancelled: bool = False
    finish_reason: FinishReason | None = None
    error: Exception | None = None
    submitted_at: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.usage.prompt_tokens = len(self.tokens)

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the likeliest allowed token comes next, whatever came before."""
        return self.params.temperature == 0 and self.shaper is None

    @property
    def remaining(self) -> int:
        return self.max_tokens - self.num_output

    @property
    def is_thinking(self) -> bool:
        return self.thinking is not None and not self.thinking.done()

    @property
    def is_late(self) -> bool:
        limit = self.params.time_limit_s
        return limit is not None and time.perf_counter() - self.submitted_at > limit

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self.submitted_at) * 1e3

    def append(self, token_id: int) -> None:
        """Add one generated token; it is computed by the next step."""
        if not self.num_output:
            self.usage.ttft_ms = self.elapsed_ms()
        self.tokens.append(token_id)
        self.num_output += 1
        self.usage.completion_tokens = self.num_output
        if self.shaper is not None:
            self.shaper.add(token_id)

    def finish(self, reason: FinishReason, error: Exception | None = None) -> None:
        self.finish_reason = reason
        self.error = error
        self.usage.total_ms = self.elapsed_ms()
