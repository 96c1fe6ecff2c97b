"""The grammar cache: one compile for many, off the loop, bounded."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from api.grammars import GrammarCache
from constrained.errors import OverloadedError, UnsupportedKeywordError
from constrained.options import CompileOptions

COMPACT = CompileOptions(whitespace="compact")


class Compiler:
    """Counts compiles; each waits for `gate`."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.compiled: list[Any] = []
        self.threads: set[int] = set()

    def __call__(self, schema: Any, options: CompileOptions) -> Any:
        self.gate.wait()
        self.threads.add(threading.get_ident())
        self.compiled.append(schema)
        if schema == "refused":
            raise UnsupportedKeywordError("refused", "", "pattern")
        return ("grammar", schema, options.whitespace)


def cache_of(compiler: Compiler, max_entries: int = 4, max_pending: int = 4) -> GrammarCache:
    return GrammarCache(compiler, ThreadPoolExecutor(2), max_entries, max_pending)


def test_a_schema_is_compiled_once_and_off_the_loop() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler)
        compiler.gate.clear()
        waiting = [asyncio.create_task(cache.get({"type": "null"}, CompileOptions())) for _ in range(5)]
        await asyncio.sleep(0)
        compiler.gate.set()
        first, *others = await asyncio.gather(*waiting)
        assert all(other is first for other in others)
        assert await cache.get({"type": "null"}, CompileOptions()) is first

    asyncio.run(main())
    assert compiler.compiled == [{"type": "null"}]
    assert threading.get_ident() not in compiler.threads


def test_options_and_the_order_of_properties_make_another_grammar() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler)
        await cache.get({"a": 1, "b": 2}, CompileOptions())
        await cache.get({"b": 2, "a": 1}, CompileOptions())
        await cache.get({"a": 1, "b": 2}, COMPACT)
        await cache.get({"a": 1.0, "b": 2}, CompileOptions())

    asyncio.run(main())
    assert len(compiler.compiled) == 4


def test_the_schema_used_longest_ago_is_dropped_first() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler, max_entries=2)
        for schema in ("a", "b", "a", "c", "a", "b"):
            await cache.get(schema, COMPACT)

    asyncio.run(main())
    assert compiler.compiled == ["a", "b", "c", "b"]


def test_an_error_reaches_every_waiter_and_is_not_kept() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler)
        results = await asyncio.gather(*(cache.get("refused", COMPACT) for _ in range(2)), return_exceptions=True)
        assert all(isinstance(result, UnsupportedKeywordError) for result in results)
        with pytest.raises(UnsupportedKeywordError):
            await cache.get("refused", COMPACT)

    asyncio.run(main())
    assert compiler.compiled == ["refused", "refused"]


def test_a_waiter_that_is_cancelled_leaves_the_compile_to_the_others() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler)
        compiler.gate.clear()
        leaving, staying = (asyncio.create_task(cache.get("x", COMPACT)) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        compiler.gate.set()
        assert await staying == ("grammar", "x", "compact")
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(main())


def test_too_many_waiting_compiles_are_refused() -> None:
    compiler = Compiler()

    async def main() -> None:
        cache = cache_of(compiler, max_pending=2)
        compiler.gate.clear()
        waiting = [asyncio.create_task(cache.get(name, COMPACT)) for name in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await cache.get("c", COMPACT)
        compiler.gate.set()
        await asyncio.gather(*waiting)
        await cache.get("c", COMPACT)

    asyncio.run(main())
