"""Mail addresses, put together from parts that are right or wrong."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS
from tests.grammar.formats.membership import check, holds

EMAIL, IDN_EMAIL = FORMATS["email"], FORMATS["idn-email"]
ATEXT = string.ascii_letters + string.digits + "!#$%&'*+-/=?^_`{|}~"
PRINTABLE = "".join(map(chr, range(32, 127)))


@pytest.mark.parametrize("character", [chr(code) for code in (*range(0x180), 0x2028, 0xFFFF, 0x10FFFF)])
def test_which_characters_stand_where(character: str) -> None:
    beyond = ord(character) >= 0x80
    for form, more in ((EMAIL, False), (IDN_EMAIL, beyond)):
        assert holds(form, f"{character}@a") == (character in ATEXT or more)
        assert holds(form, f'"{character}"@a') == (character in set(PRINTABLE) - set('"\\') or more)
        assert holds(form, f'"\\{character}"@a') == (character in PRINTABLE)
        assert holds(form, f"a@{character}") == (character in string.ascii_letters + string.digits or more)
        assert holds(form, f"a@a{character}a") == (character in string.ascii_letters + string.digits + "-." or more)


@given(st.text(ATEXT + ".", max_size=8), st.text("aZ0-.", max_size=8))
def test_dots_stand_between_parts(local: str, domain: str) -> None:
    fine = all(local.split(".")) and all(part and part.strip("-") == part for part in domain.split("."))
    assert holds(EMAIL, f"{local}@{domain}") == holds(IDN_EMAIL, f"{local}@{domain}") == fine


@given(st.text(PRINTABLE + "é語", max_size=12))
def test_every_mail_address_is_an_internationalized_one(text: str) -> None:
    for address in (text, f"{text}@a.b", f'"{text}"@a.b', f"a@{text}"):
        assert not holds(EMAIL, address) or holds(IDN_EMAIL, address)


@pytest.mark.parametrize("left", range(9))
@pytest.mark.parametrize("right", range(9))
def test_the_compressed_part_of_a_literal_stands_for_two_groups_at_least(left: int, right: int) -> None:
    text = ":".join(["a"] * left) + "::" + ":".join(["b"] * right)
    assert holds(EMAIL, f"a@[IPv6:{text}]") == (left + right <= 6)
    mixed = text + ("1.2.3.4" if right == 0 else ":1.2.3.4")
    assert holds(EMAIL, f"a@[ipv6:{mixed}]") == (left + right <= 4)


def test_address_literals() -> None:
    check(
        "email",
        accepts=["a@[1.2.3.4]", "a@[001.02.3.255]", "a@[IPv6:1:2:3:4:5:6:7:8]", "a@[IPv6:1:2:3:4:5:6:1.2.3.4]", '""@a'],
        rejects=[
            "a@[256.1.1.1]",
            "a@[0001.1.1.1]",
            "a@1.2.3.4]",
            "a@[IPv6:1]",
            "a@[::1]",
            "a@[tag:x]",
            "a@[]",
            "a@b.",
            "a@b..c",
        ],
    )
