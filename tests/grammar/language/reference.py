"""A plain matcher of ECMA-262 expressions, the oracle of these tests: sets of end positions, no automaton, no rewriting."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st

ALPHABET = "ab-\n"
WORD = frozenset("ab")


@dataclass(frozen=True)
class Node:
    """One operator with its pattern text; `ends(text, i)` are the positions where a match from `i` may end."""

    kind: str
    parts: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return _RENDER[self.kind](*self.parts)

    def ends(self, text: str, i: int) -> frozenset[int]:
        return _ENDS[self.kind](text, i, *self.parts)

    def matches_somewhere(self, text: str) -> bool:
        return any(self.ends(text, i) for i in range(len(text) + 1))

    def matches_whole(self, text: str) -> bool:
        return len(text) in self.ends(text, 0)


def all_texts(max_len: int) -> list[str]:
    return ["".join(chars) for size in range(max_len + 1) for chars in product(ALPHABET, repeat=size)]


def _one(members: str) -> Any:
    return lambda text, i, *_: frozenset({i + 1} if i < len(text) and text[i] in members else ())


def _when(holds: Any) -> Any:
    return lambda text, i, *parts: frozenset({i} if holds(text, i, *parts) else ())


def _sequence(text: str, i: int, *parts: Node) -> frozenset[int]:
    places = frozenset({i})
    for part in parts:
        places = frozenset(end for place in places for end in part.ends(text, place))
    return places


def _repeat(text: str, i: int, body: Node, low: int, high: int | None, _: str) -> frozenset[int]:
    places, found = frozenset({i}), frozenset({i} if low == 0 else ())
    # More rounds than this reach nothing new, as there are no more places.
    for count in range(1, (low + len(text) + 1 if high is None else high) + 1):
        places = frozenset(end for place in places for end in body.ends(text, place))
        if count >= low:
            found |= places
    return found


def _boundary(text: str, i: int) -> bool:
    return (i > 0 and text[i - 1] in WORD) != (i < len(text) and text[i] in WORD)


def _behind(text: str, i: int, body: Node) -> bool:
    return any(i in body.ends(text, j) for j in range(i + 1))


_ENDS: dict[str, Any] = {
    "char": lambda text, i, char: _one(char)(text, i),
    "dot": _one("ab-"),
    "word": _one("ab"),
    "class": lambda text, i, members: _one(members)(text, i),
    "not class": lambda text, i, members: _one("".join(set(ALPHABET) - set(members)))(text, i),
    "sequence": _sequence,
    "choice": lambda text, i, *arms: frozenset(end for arm in arms for end in arm.ends(text, i)),
    "repeat": _repeat,
    "start": _when(lambda text, i: i == 0),
    "end": _when(lambda text, i: i == len(text)),
    "boundary": _when(_boundary),
    "no boundary": _when(lambda text, i: not _boundary(text, i)),
    "ahead": _when(lambda text, i, body: bool(body.ends(text, i))),
    "not ahead": _when(lambda text, i, body: not body.ends(text, i)),
    "behind": _when(_behind),
    "not behind": _when(lambda text, i, body: not _behind(text, i, body)),
}
_RENDER: dict[str, Any] = {
    "char": lambda char: "\\n" if char == "\n" else char,
    "dot": lambda: ".",
    "word": lambda: "\\w",
    "class": lambda members: f"[{''.join(sorted(members))}]",
    "not class": lambda members: f"[^{''.join(sorted(members))}]",
    "sequence": lambda *parts: "".join(f"(?:{part})" if part.kind == "choice" else str(part) for part in parts),
    "choice": lambda *arms: "|".join(map(str, arms)),
    "repeat": lambda body, low, high, lazy: f"(?:{body}){{{low},{'' if high is None else high}}}{lazy}",
    "start": lambda: "^",
    "end": lambda: "$",
    "boundary": lambda: "\\b",
    "no boundary": lambda: "\\B",
    "ahead": lambda body: f"(?={body})",
    "not ahead": lambda body: f"(?!{body})",
    "behind": lambda body: f"(?<={body})",
    "not behind": lambda body: f"(?<!{body})",
}

_members = st.sets(st.sampled_from("ab\n"), min_size=1, max_size=2).map(lambda chars: "".join(sorted(chars)))
_chars = st.one_of(
    st.sampled_from(ALPHABET).map(lambda char: Node("char", (char,))),
    st.sampled_from([Node("dot"), Node("word")]),
    st.builds(lambda kind, members: Node(kind, (members,)), st.sampled_from(["class", "not class"]), _members),
)
_anchors = st.sampled_from([Node("start"), Node("end"), Node("boundary"), Node("no boundary")])


def _grown(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (0, 2), (2, 3), (1, 3)])
    return st.one_of(
        st.lists(children, min_size=2, max_size=3).map(lambda parts: Node("sequence", tuple(parts))),
        st.lists(children, min_size=2, max_size=3).map(lambda arms: Node("choice", tuple(arms))),
        st.builds(lambda body, span, lazy: Node("repeat", (body, *span, lazy)), children, counts, st.sampled_from(["", "?"])),
    )


def _with_lookarounds(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    ahead = st.builds(lambda kind, body: Node(kind, (body,)), st.sampled_from(["ahead", "not ahead"]), children)
    behind = st.builds(lambda kind, body: Node(kind, (body,)), st.sampled_from(["behind", "not behind"]), plain)
    return st.one_of(_grown(children), _grown(children), ahead, behind)


plain = st.recursive(_chars, _grown, max_leaves=6)
nodes = st.recursive(st.one_of(_chars, _chars, _anchors), _with_lookarounds, max_leaves=7)
