"""The flat trie holds exactly the strings it was built from, under the right nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from constrained.tokens.trie import Trie

STRINGS = st.lists(st.binary(max_size=5).map(lambda data: bytes(byte % 3 for byte in data)), max_size=30)


def spelled(trie: Trie) -> dict[int, bytes]:
    """The bytes that lead to each node, by walking the edges."""
    found = {0: b""}
    for node in range(len(trie.byte)):
        for edge in range(trie.edge_first[node], trie.edge_first[node + 1]):
            found[int(trie.edge_node[edge])] = found[node] + bytes([trie.edge_byte[edge]])
    return found


@given(STRINGS)
def test_every_string_ends_at_its_node(strings: list[bytes]) -> None:
    trie = Trie.build(strings, keep_empty=True)
    paths = spelled(trie)
    for node, path in paths.items():
        own = trie.ids[trie.first[node] : trie.first[node + 1]]
        assert sorted(own.tolist()) == [i for i, text in enumerate(strings) if text == path]
        below = trie.ids[trie.first[node] : trie.first[trie.end[node]]]
        assert sorted(below.tolist()) == [i for i, text in enumerate(strings) if text.startswith(path)]
        assert trie.depth[node] == len(path)
    assert set(paths.values()) == {text[:n] for text in [*strings, b""] for n in range(len(text) + 1)}


@given(STRINGS)
def test_empty_strings_are_left_out_unless_asked_for(strings: list[bytes]) -> None:
    trie = Trie.build(strings)
    assert sorted(trie.ids.tolist()) == [i for i, text in enumerate(strings) if text]
    assert trie.max_depth == max(map(len, strings), default=0)
