"""How much memory a structure takes: what it alone leads to, without what is shared beyond it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_PLAIN = (str, bytes, int, float, bool, type(None))


def memory_bytes(root: Any, shared: Iterable[Any] = ()) -> int:
    """Bytes of all objects that `root` leads to, each once; not of `shared`, what they are made of, classes and functions.

    Takes about a microsecond an object. Objects of C code count as what `sys.getsizeof` says of them.
    """
    seen = {id(thing) for thing in shared}
    pending, total = [root], 0
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, _SHARED):
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing)
        if isinstance(thing, np.ndarray):
            pending += [thing.base] if thing.base is not None else []
        elif isinstance(thing, memoryview):
            pending.append(thing.obj)
        elif not isinstance(thing, _PLAIN):
            pending += _parts(thing)
    return total


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        for key, value in list(thing.items()):
            yield key
            yield value
    elif isinstance(thing, list | tuple | AbstractSet):
        yield from list(thing)
    yield from vars(thing).values() if hasattr(thing, "__dict__") else ()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__") and hasattr(thing, name):
                yield getattr(thing, name)
