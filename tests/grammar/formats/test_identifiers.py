"""UUIDs against `uuid`, JSON Pointers against their escaping."""

from __future__ import annotations

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS
from tests.grammar.formats.membership import check, holds

UUID, POINTER, RELATIVE = (FORMATS[name] for name in ("uuid", "json-pointer", "relative-json-pointer"))


@given(st.uuids())
def test_every_uuid_is_one(value: uuid.UUID) -> None:
    text = str(value)
    assert holds(UUID, text)
    assert holds(UUID, text.upper())
    assert not holds(UUID, value.hex)
    assert not holds(UUID, f"{{{text}}}")
    assert not holds(UUID, text[1:])


@given(st.lists(st.text()))
def test_escaped_tokens_make_a_pointer(tokens: list[str]) -> None:
    text = "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)
    assert holds(POINTER, text)
    assert holds(RELATIVE, f"0{text}")
    assert not holds(POINTER, f"{text}~")


@given(st.text("~012/#a"))
def test_a_tilde_is_followed_by_0_or_1(text: str) -> None:
    bare = re.sub("~[01]", "", text)
    assert holds(POINTER, text) == ("~" not in bare and (not text or text.startswith("/")))


@given(st.integers(0, 10**30))
def test_the_number_of_a_relative_pointer(number: int) -> None:
    check(
        "relative-json-pointer",
        accepts=[f"{number}", f"{number}#", f"{number}/"],
        rejects=[f"0{number}", f"-{number}", f"{number}#/"],
    )
