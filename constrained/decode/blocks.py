"""Which blocks of KV memory belong to whom. Knows block numbers only, never their contents."""

from __future__ import annotations

from constrained.errors import InternalError


class BlockManager:
    """A pool of `num_blocks` blocks of `block_len` tokens each."""

    def __init__(self, num_blocks: int, block_len: int) -> None:
        self.num_blocks = num_blocks
        self.block_len = block_len
        self._free = list(range(num_blocks - 1, -1, -1))

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def capacity(self) -> int:
        """Tokens that one sequence could hold if it had the whole pool."""
        return self.num_blocks * self.block_len

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_len)

    def grow(self, blocks: list[int], num_tokens: int) -> bool:
        """Lengthen `blocks` until it holds `num_tokens`; all or nothing."""
        missing = self.blocks_for(num_tokens) - len(blocks)
        if missing > len(self._free):
            return False
        blocks.extend(self._free.pop() for _ in range(missing))
        return True

    def release(self, blocks: list[int]) -> None:
        """Give all of `blocks` back and empty the list."""
        self._free.extend(reversed(blocks))
        blocks.clear()
        if len(self._free) > self.num_blocks:
            raise InternalError("a KV block was given back twice")
