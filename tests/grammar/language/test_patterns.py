"""Patterns mean what ECMA-262 says: against a plain matcher, against `re`, and case by case."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from constrained.grammar.language import PatternError, from_pattern
from tests.grammar.language.reference import Node, all_texts, nodes, plain

TEXTS = all_texts(4)


@settings(max_examples=150, deadline=None)
@given(nodes)
def test_search_is_that_of_the_reference(node: Node) -> None:
    language = from_pattern(str(node))
    for text in TEXTS:
        assert language.contains(text) == node.matches_somewhere(text), (str(node), text)


@settings(max_examples=150, deadline=None)
@given(nodes)
def test_anchored_is_a_match_from_end_to_end(node: Node) -> None:
    language = from_pattern(str(node), anchored=True)
    for text in TEXTS:
        assert language.contains(text) == node.matches_whole(text), (str(node), text)


@settings(max_examples=100, deadline=None)
@given(plain)
def test_plain_patterns_agree_with_re(node: Node) -> None:
    language, compiled = from_pattern(str(node)), re.compile(str(node), re.ASCII)
    whole = from_pattern(str(node), anchored=True)
    for text in TEXTS:
        assert language.contains(text) == (compiled.search(text) is not None), (str(node), text)
        assert whole.contains(text) == (compiled.fullmatch(text) is not None), (str(node), text)
