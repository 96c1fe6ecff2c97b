"""The device table of mask rows: a row is uploaded once, steps then send its slot number only.

Knows nothing of grammars: a row is an id and its words. Slot 0 allows every token and is never given away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Seq
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from constrained.decode.sequence import MaskRowLike
from constrained.errors import InternalError

ALL_TOKENS = 0


class RowTable:
    """`table` int32 [capacity, num_words] on `device`; the least recently used rows leave first.

    Safe between threads; a thread's slots hold as long as others bring in fewer new rows than the table has beside them.
    """

    def __init__(self, capacity: int, num_words: int, device: torch.device) -> None:
        self.table = torch.zeros(capacity, num_words, dtype=torch.int32, device=device)
        self.table[ALL_TOKENS] = -1
        self.num_uploads = 0
        self._lock = Lock()
        self._slots: OrderedDict[int, int] = OrderedDict()  # row id -> slot, least recently used first
        self._free = list(range(capacity - 1, ALL_TOKENS, -1))

    @property
    def words(self) -> NDArray[np.int32]:
        """The table in place, on a CPU."""
        return self.table.numpy()

    def slots(self, rows: Seq[MaskRowLike | None]) -> list[int]:
        """The slot of each row of one step (None: every token), after uploading those that are new.

        No row of `rows` is evicted by another one: they are marked as used before any slot is taken.
        """
        with self._lock:
            return self._slots_of(rows)

    def _slots_of(self, rows: Seq[MaskRowLike | None]) -> list[int]:
        fresh = {row.id: row for row in rows if row is not None and row.id not in self._slots}
        for row in rows:
            if row is not None and row.id in self._slots:
                self._slots.move_to_end(row.id)
        if len(fresh) > len(self._free):
            self._evict(len(fresh) - len(self._free), {row.id for row in rows if row is not None})
        self._upload(list(fresh.values()))
        return [ALL_TOKENS if row is None else self._slots[row.id] for row in rows]

    def _evict(self, count: int, in_use: set[int]) -> None:
        for row_id in list(self._slots)[:count]:
            if row_id in in_use:
                raise InternalError(f"one step uses more mask rows than the table holds ({len(self.table) - 1})")
            self._free.append(self._slots.pop(row_id))

    def _upload(self, rows: list[MaskRowLike]) -> None:
        if not rows:
            return
        words = torch.from_numpy(np.stack([np.asarray(row.words, np.int32) for row in rows]))
        if words.shape[1] != self.table.shape[1]:
            raise InternalError(f"mask rows of {words.shape[1]} words; the vocabulary needs {self.table.shape[1]}")
        slots = [self._free.pop() for _ in rows]
        self.table[torch.tensor(slots, device=self.table.device)] = words.to(self.table.device)
        self._slots.update((row.id, slot) for row, slot in zip(rows, slots, strict=True))
        self.num_uploads += len(rows)
