"""One step's packed batch: rows of several sequences laid end to end, with where each one's past lies.

Knows neither the model nor the scheduler's reasons.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from constrained.decode.batch_kernels import lay_out
from constrained.errors import InternalError


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens that one sequence feeds in one step: `token_ids` at positions `start` and on.

    The logits of its last `num_logits` rows are wanted.
    """

    token_ids: Seq[int]
    start: int
    blocks: Seq[int]
    num_logits: int

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """N rows of S sequences. `row_starts` [S + 1] cuts the rows by sequence; `ends` [S] is each one's length after the step.

    `slots` say where in the KV memory each row's keys and values go: block times its length, plus the place in it.
    """

    token_ids: NDArray[np.int64]  # [N]
    positions: NDArray[np.int64]  # [N]
    row_starts: NDArray[np.int64]  # [S + 1]
    ends: NDArray[np.int64]  # [S]
    tables: NDArray[np.int64]  # [S, most blocks of a sequence]
    slots: NDArray[np.int64]  # [N]
    logit_rows: NDArray[np.int64]  # [rows whose logits are wanted]

    @property
    def num_rows(self) -> int:
        return len(self.token_ids)

    @property
    def is_decode(self) -> bool:
        """Whether every sequence feeds one token and wants its logits."""
        return self.num_rows == self.num_sequences == len(self.logit_rows)

    @property
    def num_sequences(self) -> int:
        return len(self.ends)


def pack(spans: Seq[Span]) -> PackedBatch:
    """Lay `spans` end to end, in their order."""
    numbers = np.array([(len(s.token_ids), s.start, len(s.blocks), s.num_logits) for s in spans], np.int64)
    num_rows, _, num_blocks, num_wanted = numbers.sum(axis=0).tolist()
    batch = PackedBatch(
        token_ids=np.fromiter(chain.from_iterable([s.token_ids for s in spans]), np.int64, num_rows),
        positions=np.empty(num_rows, np.int64),
        row_starts=np.empty(len(spans) + 1, np.int64),
        ends=np.empty(len(spans), np.int64),
        tables=np.zeros((len(spans), max([len(s.blocks) for s in spans])), np.int64),
        slots=np.empty(num_rows, np.int64),
        logit_rows=np.empty(num_wanted, np.int64),
    )
    blocks = np.fromiter(chain.from_iterable([s.blocks for s in spans]), np.int64, num_blocks)
    outside = lay_out(
        numbers, blocks, batch.row_starts, batch.ends, batch.tables, batch.positions, batch.slots, batch.logit_rows
    )
    if outside >= 0:
        span = spans[outside]
        raise InternalError(f"a sequence of {span.end} tokens has {len(span.blocks)} KV blocks only")
    return batch
