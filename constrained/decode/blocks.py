"""Which blocks of KV memory belong to whom, and which tokens they hold. Knows numbers only, never tensors.

A block whose tokens are known is found again by the block before it and its own tokens, compared exactly: a chain of
blocks stands for one prefix. Whole blocks are shared by reference. A block that agrees in its first tokens only is
copied, since its new owner writes behind them at once. Blocks that nobody owns keep their contents until their memory
is needed; the least recently used goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from itertools import islice

from constrained.errors import InternalError

_ROOT = 0  # the serial of the empty prefix
_MOST_COMPARED = 64  # blocks after one prefix that are looked at for a partial match, the newest first

Copy = tuple[int, int]  # source block, target block


@dataclass(slots=True)
class BlockTable:
    """One sequence's blocks. The first `num_known` of them are full of known tokens; `serial` names the prefix they hold."""

    blocks: list[int] = field(default_factory=list)
    num_known: int = 0
    serial: int = _ROOT

    def __len__(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True, slots=True)
class _Content:
    """What a block holds: `tokens` after the prefix `parent`; `serial` names the prefix that ends with it."""

    parent: int
    tokens: tuple[int, ...]
    serial: int


class BlockManager:
    """A pool of `num_blocks` blocks of `block_len` tokens each; with `remembers` False no prefix is ever found again."""

    def __init__(self, num_blocks: int, block_len: int, remembers: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_len = block_len
        self.remembers = remembers
        self._owners = [0] * num_blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))  # the next to be taken first
        self._contents: dict[int, _Content] = {}
        self._after: dict[int, dict[tuple[int, ...], int]] = {}  # prefix serial -> tokens -> block
        self._next_serial = _ROOT + 1

    @property
    def num_free(self) -> int:
        """Blocks without an owner, whether or not their contents are still known."""
        return len(self._free)

    @property
    def capacity(self) -> int:
        """Tokens that one sequence could hold if it had the whole pool."""
        return self.num_blocks * self.block_len

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_len)

    # -- owning

    def reuse(self, tokens: Seq[int]) -> tuple[BlockTable, int, list[Copy]]:
        """A table that holds the longest known prefix of `tokens`, its length, and the copies that must come before any write.

        The last token is left out: it must be computed for the sake of its logits.
        """
        table, limit = BlockTable(), len(tokens) - 1
        while (end := (len(table) + 1) * self.block_len) <= limit:
            block = self._after.get(table.serial, {}).get(tuple(tokens[end - self.block_len : end]))
            if block is None:
                break
            self._own(block)
            table.blocks.append(block)
            table.num_known += 1
            table.serial = self._contents[block].serial
        whole = len(table) * self.block_len
        source, length = self._most_alike(table.serial, tokens[whole : min(limit, whole + self.block_len)])
        if source is None or not self._free:
            return table, whole, []
        self._own(source)  # so that its own copy is not made over it
        copies = [(source, self._take())] if self._free else []
        table.blocks.extend(target for _, target in copies)
        self._disown(source)
        return table, whole + length if copies else whole, copies

    def grow(self, table: BlockTable, num_tokens: int) -> bool:
        """Lengthen the table until it holds `num_tokens`; all or nothing."""
        missing = self.blocks_for(num_tokens) - len(table)
        if missing > len(self._free):
            return False
        table.blocks.extend(self._take() for _ in range(missing))
        return True

    def register(self, table: BlockTable, tokens: Seq[int], num_computed: int) -> None:
        """Make known the blocks of `table` that `num_computed` of `tokens` fill."""
        while self.remembers and (end := (table.num_known + 1) * self.block_len) <= num_computed:
            block = table.blocks[table.num_known]
            table.serial = self._know(block, table.serial, tuple(tokens[end - self.block_len : end]))
            table.num_known += 1

    def register_tail(self, table: BlockTable, tokens: Seq[int], num_computed: int) -> None:
        """Make known the last, partly filled block too. Its owner may go on: it only writes behind what is known."""
        self.register(table, tokens, num_computed)
        tail = tuple(tokens[table.num_known * self.block_len : num_computed])
        if tail and self.remembers:
            self._know(table.blocks[table.num_known], table.serial, tail)

    def release(self, table: BlockTable, tokens: Seq[int] = (), num_computed: int = 0) -> None:
        """Give all blocks back; what they hold of `tokens` stays known. The end of a prefix is forgotten before its start."""
        if num_computed:
            self.register_tail(table, tokens, num_computed)
        for block in reversed(table.blocks):
            self._disown(block)
        table.blocks.clear()
        table.num_known, table.serial = 0, _ROOT

    # -- blocks without owners

    def _own(self, block: int) -> None:
        self._owners[block] += 1
        self._free.pop(block, None)

    def _disown(self, block: int) -> None:
        if self._owners[block] == 0:
            raise InternalError("a KV block was given back twice")
        self._owners[block] -= 1
        if self._owners[block] == 0:
            self._free[block] = None
            if block not in self._contents:
                self._free.move_to_end(block, last=False)

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        self._forget(block)
        self._owners[block] = 1
        return block

    # -- contents

    def _know(self, block: int, parent: int, tokens: tuple[int, ...]) -> int:
        """Register a block's contents; the serial of the prefix that ends with it. A twin that is known already stays."""
        twin = self._after.get(parent, {}).get(tokens)
        if twin is not None:
            return self._contents[twin].serial
        self._forget(block)
        self._after.setdefault(parent, {})[tokens] = block
        self._contents[block] = _Content(parent, tokens, self._next_serial)
        self._next_serial += 1
        return self._next_serial - 1

    def _forget(self, block: int) -> None:
        content = self._contents.pop(block, None)
        if content is None:
            return
        after = self._after[content.parent]
        del after[content.tokens]
        if not after:
            del self._after[content.parent]

    def _most_alike(self, parent: int, tokens: Seq[int]) -> tuple[int | None, int]:
        """The block after `parent` that begins with most of `tokens`, and how many."""
        best, length = None, 0
        for known, block in islice(reversed(self._after.get(parent, {}).items()), _MOST_COMPARED):
            common = next(
                (i for i, (a, b) in enumerate(zip(known, tokens, strict=False)) if a != b), min(len(known), len(tokens))
            )
            if common > length:
                best, length = block, common
        return best, length
