"""The project's own engine and Python's `re` read the patterns alike."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from constrained.grammar.formats import FORMATS, Format
from tests.grammar.formats.languages import certain, possible
from tests.grammar.formats.membership import holds
from tests.grammar.formats.test_suite import cases

EACH = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


@EACH
def test_they_agree_on_every_string_of_the_suite(form: Format, shared_data: Path) -> None:
    """Of every format's tests: what is valid under one name is a near miss under another."""
    texts = {text for draft in ("draft7", "draft2020-12") for name, text, *_ in cases(shared_data, draft)}
    sure, maybe = certain(form), possible(form)
    for text in texts:
        assert sure.contains(text) == holds(form, text)
        assert maybe.contains(text) == holds(form.wider or form, text)


@EACH
def test_a_walk_through_the_automaton_spells_a_valid_string(form: Format) -> None:
    chance = random.Random(form.name)
    for _ in range(20):
        language, text = certain(form), ""
        while (steps := language.steps()) and not (language.accepts_empty and chance.random() < len(text) / 60):
            low, high, language = chance.choice(steps)
            text += chr(chance.randint(low, high))
            if len(text) == 40:
                text += language.shortest() or ""
                break
        assert holds(form, text)
