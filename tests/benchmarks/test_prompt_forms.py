"""The tasks alone; the model is asked by the benchmark itself."""

from __future__ import annotations

from random import Random

import jsonschema
import pytest

from benchmarks.prompt_forms import FORMS, KINDS, leaves
from constrained.decode.outline import outline


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_can_be_answered_from_its_text(kind: object) -> None:
    pick = Random(3)
    for _ in range(20):
        task = kind(pick)  # type: ignore[operator]
        jsonschema.validate(task.value, task.schema)
        for _, fact in leaves(task.value):
            assert isinstance(fact, bool) or str(fact) in task.text


def test_the_forms_differ_in_what_they_tell() -> None:
    schema = KINDS[0](Random(0)).schema
    told = [form.instruction(schema) for form in FORMS.values() if form is not None]
    assert outline(schema) is not None
    assert [str(outline(schema)) in text for text in told] == [True, False]
    assert ['"properties"' in text for text in told] == [False, True]


def test_leaves_are_scalars_by_their_paths() -> None:
    assert list(leaves({"a": [1, {"b": None}], "c": "x"})) == [("/a/0", 1), ("/a/1/b", None), ("/c", "x")]
