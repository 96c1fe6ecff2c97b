"""URIs and IRIs, taken apart by the regular expression of RFC 3986, appendix B; URI templates by their rule."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS
from tests.grammar.formats.membership import check, holds

URI, URI_REFERENCE, IRI, IRI_REFERENCE, TEMPLATE = (
    FORMATS[name] for name in ("uri", "uri-reference", "iri", "iri-reference", "uri-template")
)
PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
UNRESERVED = string.ascii_letters + string.digits + "-._~"
SUB_DELIMS = "!$&'()*+,;="
PIECES = [
    "a",
    "Z",
    "1",
    ":",
    "/",
    "//",
    "?",
    "#",
    "@",
    "[",
    "]",
    "[::1]",
    "[v1.a:b]",
    "%41",
    "%4",
    "%",
    ".",
    "-",
    "+",
    "=",
    "é",
    " ",
]


def made_of(text: str | None, characters: str) -> bool:
    return set(re.sub("%[0-9A-Fa-f]{2}", "", text or "")) <= set(UNRESERVED + SUB_DELIMS + characters)


def is_authority(text: str) -> bool:
    user, at, rest = text.rpartition("@")
    host, port = re.fullmatch(r"(.*?)(?::(\d*))?", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    host_is_fine = host in ("[::1]", "[v1.a:b]") or made_of(host, "")
    return (not at or made_of(user, ":")) and host_is_fine and (port is None or port.isascii())


def is_reference(text: str, relative: bool) -> bool:
    """By taking the text apart first and looking at each part then."""
    scheme, authority, path, query, fragment = PARTS.fullmatch(text).groups()  # type: ignore[union-attr]
    if scheme is None and (not relative or (authority is None and ":" in path.split("/")[0])):
        return False
    if scheme is not None and not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return False
    fine = is_authority(authority) if authority is not None else not path.startswith("//")
    return fine and made_of(path, ":@/") and made_of(query, ":@/?") and made_of(fragment, ":@/?")


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_references_are_right_when_their_parts_are(text: str) -> None:
    for candidate in (text, f"a:{text}", f"s://{text}", f"//{text}"):
        assert holds(URI_REFERENCE, candidate) == is_reference(candidate, relative=True)
        assert holds(URI, candidate) == is_reference(candidate, relative=False)


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_every_uri_is_an_iri_and_every_iri_a_reference(text: str) -> None:
    for candidate in (text, f"a:{text}", f"s://{text}"):
        assert not holds(URI, candidate) or (holds(IRI, candidate) and holds(URI_REFERENCE, candidate))
        assert not holds(IRI, candidate) or holds(IRI_REFERENCE, candidate)
        assert not candidate.isascii() or holds(IRI_REFERENCE, candidate) == holds(URI_REFERENCE, candidate)


def is_ucschar(code: int) -> bool:
    """RFC 3987, section 2.2: no control, no surrogate, no private use, no noncharacter, no special, no tag."""
    if code < 0xA0 or 0xD800 <= code < 0xF900 or 0xFDD0 <= code < 0xFDF0 or 0xFFF0 <= code < 0x10000:
        return False
    return (code < 0xE0000 and code & 0xFFFF < 0xFFFE) or 0xE1000 <= code < 0xEFFFE


def is_private(code: int) -> bool:
    return 0xE000 <= code < 0xF900 or (code >= 0xF0000 and code & 0xFFFF < 0xFFFE)


DIRECTS = {0x200E, 0x200F, *range(0x202A, 0x202F)}
EDGES = sorted(
    {edge + step for edge in (0xA0, 0xD800, 0xE000, 0xF900, 0xFDD0, 0xFDF0, 0xFFF0, 0xE1000) for step in (-1, 0, 1)}
    | {plane << 16 | low for plane in range(17) for low in (0, 1, 0xFFFD, 0xFFFE, 0xFFFF)}
    | {code + step for code in DIRECTS for step in (-1, 0, 1)}
)


@pytest.mark.parametrize("code", [code for code in EDGES if code > 0x7F and not 0xD800 <= code < 0xE000])
def test_which_characters_an_iri_adds(code: int) -> None:
    character = chr(code)
    letter = is_ucschar(code) and code not in DIRECTS
    for text in (f"s://{character}", f"s:/a{character}", f"s:a#{character}", f"s://{character}@a"):
        assert holds(IRI, text) == letter
        assert not holds(URI, text)
    assert holds(IRI, f"s:a?{character}") == (letter or is_private(code))
    assert holds(TEMPLATE, character) == (is_ucschar(code) or is_private(code))


@pytest.mark.parametrize("character", [chr(code) for code in range(128) if chr(code) not in "{}%"])
def test_which_characters_are_literals_of_a_template(character: str) -> None:
    assert holds(TEMPLATE, character) == (character.isprintable() and character not in ' "<>\\^`|')


@given(st.lists(st.sampled_from(["a", "_", "1", "0", ".", ",", ":", "*", "%41", "%", "+", "="]), max_size=9).map("".join))
def test_expressions_of_a_template(text: str) -> None:
    varspec = r"(?:\w|%[0-9a-f]{2})(?:\.?(?:\w|%[0-9a-f]{2}))*(?::[1-9]\d{0,3}|\*)?"
    fine = re.fullmatch(rf"[+=.,]?{varspec}(?:,{varspec})*", text) is not None
    assert holds(TEMPLATE, f"a{{{text}}}") == holds(TEMPLATE, f"{{{text}}}{{a}}") == fine


def test_uris() -> None:
    check(
        "uri",
        accepts=["a:", "a:b", "a://", "a:///", "a:/b//c", "a:?#", "a+b-c.d:e", "http://[v7.x]:80/", "a://u:p@h:/", "tel:+1"],
        rejects=[
            "",
            "a",
            "://",
            "1a:b",
            "a:/[",
            "a:#a#b",
            "a://[::1",
            "a://[::1]x",
            "a://[v.x]",
            "a:%",
            "http://h:p",
            "a:\u00e9",
        ],
    )
