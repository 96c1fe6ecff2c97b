"""Documents for the property tests: JSON values, ways to spell them and to cut them, and a check of the ops that they give."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from constrained.stream import Close, DeltaStream, Field, Fold, Op, Open, Set, Text, Variant

SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
keys = text | st.sampled_from(["", "~", "/", "~1", "a/b~c", "0", "é", "😀"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def spell(value: Any, random: Random) -> str:
    """`value` as JSON text with a random choice of escapes, number forms and white space."""

    def gap() -> str:
        return random.choice(["", "", "", " ", "\n", "\t\r\n  "])

    if isinstance(value, str):
        return '"' + "".join(_spell_character(character, random) for character in value) + '"'
    if isinstance(value, list):
        items = f"{gap()},{gap()}".join(spell(item, random) for item in value)
        return f"[{gap()}{items}{gap()}]"
    if isinstance(value, dict):
        members = (f"{spell(key, random)}{gap()}:{gap()}{spell(item, random)}" for key, item in value.items())
        return "{" + gap() + f"{gap()},{gap()}".join(members) + gap() + "}"
    if isinstance(value, float):
        exact = Decimal(repr(value))
        return random.choice([repr(value), f"{exact:e}", f"{exact:.20E}"])
    return json.dumps(value)


def _spell_character(character: str, random: Random) -> str:
    units = character.encode("utf-16-be")
    escaped = "".join("\\u" + random.choice([str.lower, str.upper])(units[i : i + 2].hex()) for i in range(0, len(units), 2))
    if character in SHORT:
        plain = [character] if character == "/" else []
        return random.choice([SHORT[character], escaped, *plain])
    if character < " ":
        return escaped
    return random.choice([character, character, escaped])


@st.composite
def documents(draw: st.DrawFn, of: st.SearchStrategy[Any] = values) -> str:
    """The text of a document, by `json.dumps` with any options or by `spell`."""
    value = draw(of)
    if draw(st.booleans()):
        return spell(value, draw(st.randoms(use_true_random=False)))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : "), ("\n,", "\t:")]))
    return json.dumps(
        value, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.integers(0, 3)), separators=separators
    )


@st.composite
def chunks(draw: st.DrawFn, document: str) -> list[bytes]:
    """The bytes of `document`, cut anywhere; often into single bytes."""
    data = document.encode()
    if draw(st.booleans()):
        return single_bytes(data)
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=12)) | {0, len(data)})
    return [data[start:end] for start, end in pairwise(cuts)]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def stream_ops(parts: Iterable[bytes], root: Any = None) -> list[Op]:
    """Every op of a whole document."""
    stream = DeltaStream(root)
    ops = [op for part in parts for op in stream.feed(part)]
    return ops + stream.finish()


def fold_ops(ops: Iterable[Op]) -> Fold:
    fold = Fold()
    for op in ops:
        fold.apply(op)
    return fold


def same(left: Any, right: Any) -> bool:
    """JSON equality that also tells 1 from 1.0 and from true, and -0.0 from 0.0."""
    return repr(left) == repr(right)


def check_protocol(ops: Iterable[Op]) -> None:
    """Invariants 2 to 7 by a second reading of protocol.md, which shares nothing with `Fold`."""
    kinds: dict[str, str] = {}
    open_paths: list[str] = []
    counts: dict[str, int] = {}
    for op in ops:
        if isinstance(op, Field | Variant):
            assert op.path not in kinds or (isinstance(op, Variant) and op.path in open_paths)
        elif isinstance(op, Open | Set):
            assert op.path not in kinds, "a path begins once"
            kinds[op.path] = op.type if isinstance(op, Open) else "scalar"
            _check_parent(op.path, kinds, open_paths, counts)
            if isinstance(op, Open):
                open_paths.append(op.path)
        elif isinstance(op, Text):
            assert open_paths[-1] == op.path
            assert kinds[op.path] == "string"
            assert op.add.encode("utf-8").decode("utf-8") == op.add, "whole scalar values"
        else:
            assert isinstance(op, Close)
            assert open_paths.pop() == op.path
    assert not open_paths


def _check_parent(path: str, kinds: dict[str, str], open_paths: list[str], counts: dict[str, int]) -> None:
    if not path:
        assert not open_paths
        return
    parent, _, token = path.rpartition("/")
    assert open_paths, "the parent is open"
    assert open_paths[-1] == parent
    if kinds[parent] == "array":
        assert int(token) == counts.get(parent, 0), "arrays only append"
        counts[parent] = int(token) + 1
    else:
        assert kinds[parent] == "object"
