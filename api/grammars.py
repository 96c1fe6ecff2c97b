"""Compiled grammars, made off the event loop and kept.

One compile serves all requests that wait for the same schema and options; errors are not kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from api.sources import TextSource
from api.wire import canonical_json
from constrained.errors import FuelError, OverloadedError
from constrained.options import CompileOptions

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

Key = tuple[Any, ...]


class GrammarCache:
    """The `max_entries` grammars used last. Belongs to one event loop; compiles run in `executor`, `max_pending` at most.

    `on_lookup` is told of each lookup whether it was spared a compile.
    """

    def __init__(
        self,
        compile_schema: Callable[[Any, CompileOptions], CompiledGrammar],
        executor: Executor,
        max_entries: int,
        max_pending: int,
        max_schema_bytes: int = 1 << 62,
        on_lookup: Callable[[bool], None] = lambda hit: None,
    ) -> None:
        self._compile = compile_schema
        self._executor = executor
        self._max_entries = max_entries
        self._max_pending = max_pending
        self._max_schema_bytes = max_schema_bytes
        self._on_lookup = on_lookup
        self._kept: OrderedDict[Key, CompiledGrammar] = OrderedDict()
        self._pending: dict[Key, asyncio.Future[CompiledGrammar]] = {}

    async def get(self, schema: Any, options: CompileOptions) -> CompiledGrammar:
        """The grammar of a schema or of a `TextSource`.

        Raises what the compile raises, `OverloadedError` where too many compiles wait.
        """
        text = f"{schema.kind} {canonical_json(schema.shown)}" if isinstance(schema, TextSource) else canonical_json(schema)
        if len(text.encode()) > self._max_schema_bytes:
            raise FuelError(f"The schema has more than {self._max_schema_bytes} bytes")
        key = (text, *_told(options))
        self._on_lookup(key in self._kept or key in self._pending)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._pending:
            self._pending[key] = self._start(key, schema, options)
        # One waiter that is cancelled must not take the compile from the others.
        return await asyncio.shield(self._pending[key])

    def _start(self, key: Key, schema: Any, options: CompileOptions) -> asyncio.Future[CompiledGrammar]:
        if len(self._pending) >= self._max_pending:
            raise OverloadedError("Too many schemas wait to be compiled")
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, self._compile, schema, options)
        future.add_done_callback(lambda done: self._finish(key, done))
        return future

    def _finish(self, key: Key, done: asyncio.Future[CompiledGrammar]) -> None:
        del self._pending[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = done.result()
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)


def _told(options: CompileOptions) -> Key:
    """All that tells one caller's options from another's; the limits are the same for all."""
    return (
        options.whitespace,
        options.max_whitespace,
        options.property_order,
        options.spelling,
        options.formats,
        tuple(sorted(options.custom_formats.items())),
        options.unknown_formats,
        options.nullable,
    )
