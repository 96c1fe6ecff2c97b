"""Numeric addresses against `ipaddress`, host names against their rule told in Python."""

from __future__ import annotations

import ipaddress
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS, OLDER_FORMATS
from tests.grammar.formats.membership import check, decide, holds

IPV4, IPV6, HOSTNAME = (FORMATS[name] for name in ("ipv4", "ipv6", "hostname"))
LETTERS = string.ascii_letters + string.digits


def is_address(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address], text: str) -> bool:
    """Python also reads zone ids and, where it can, other digits; the format has neither."""
    if not text.isascii() or "%" in text:
        return False
    try:
        kind(text)
    except ValueError:
        return False
    return True


def test_the_numbers_of_an_ipv4_address() -> None:
    for number in range(1100):
        assert holds(IPV4, f"{number}.0.0.{number}") == (number < 256)
        assert holds(IPV4, f"1.2.0{number}.3") is False


@given(st.ip_addresses(v=4))
def test_every_ipv4_address_is_one(address: ipaddress.IPv4Address) -> None:
    assert holds(IPV4, str(address))
    assert holds(IPV6, f"::ffff:{address}")
    assert decide(HOSTNAME, str(address)) is False


@given(st.ip_addresses(v=6))
def test_every_ipv6_address_is_one(address: ipaddress.IPv6Address) -> None:
    assert holds(IPV6, address.compressed)
    assert holds(IPV6, address.exploded)


@given(st.lists(st.sampled_from(["0", "1f", "fFfF", "12345", "", ":", "1.2.3.4", "g"]), max_size=10).map(":".join))
def test_ipv6_agrees_with_python(text: str) -> None:
    assert holds(IPV6, text) == is_address(ipaddress.IPv6Address, text)


@given(st.text("0123456789.", max_size=16))
def test_ipv4_agrees_with_python(text: str) -> None:
    assert holds(IPV4, text) == is_address(ipaddress.IPv4Address, text)


@pytest.mark.parametrize("left", range(9))
@pytest.mark.parametrize("right", range(9))
def test_the_compressed_part_stands_for_a_group_at_least(left: int, right: int) -> None:
    text = ":".join(["a"] * left) + "::" + ":".join(["b"] * right)
    assert holds(IPV6, text) == (left + right <= 7) == is_address(ipaddress.IPv6Address, text)
    mixed = text + ("1.2.3.4" if right == 0 else ":1.2.3.4")
    assert holds(IPV6, mixed) == (left + right <= 5) == is_address(ipaddress.IPv6Address, mixed)


def is_host_name(text: str) -> bool:
    labels = text.split(".")
    fine = all(0 < len(label) < 64 and set(label) <= set(LETTERS + "-") and label.strip("-") == label for label in labels)
    return fine and len(text) <= 253 and not (len(labels) == 4 and all(label.isdigit() for label in labels))


@given(st.lists(st.text("aZ09-", max_size=6), min_size=1, max_size=6).map(".".join))
def test_host_names(text: str) -> None:
    assert holds(HOSTNAME, text) == is_host_name(text)


@pytest.mark.parametrize("length", [1, 2, 62, 63, 64, 65])
def test_the_length_of_a_label(length: int) -> None:
    assert holds(HOSTNAME, "a" * length) == holds(HOSTNAME, f"b.{'a' * length}.c") == (length <= 63)


@pytest.mark.parametrize("last", [60, 61, 62, 63])
def test_the_length_of_a_name(last: int) -> None:
    text = ".".join(["a" * 63] * 3 + ["a" * last])
    assert holds(HOSTNAME, text) == (len(text) <= 253)


def test_a_label_of_the_xn_kind_is_left_open_where_the_draft_knows_it() -> None:
    for text in ("xn--9n2bp8q", "XN--x.org", "a.xN--b.c"):
        assert decide(HOSTNAME, text) is None
        for draft in ("draft4", "draft6"):
            assert decide(OLDER_FORMATS[draft]["hostname"], text) is True
    check("hostname", accepts=["a.xn-a", "axn--b", "xn", "xn-1--b"], rejects=["xn--", "xn--.a", "xn--a-", "xn--_"])


def test_a_dotted_decimal_is_no_host_name() -> None:
    check("hostname", accepts=["1.2.3", "1.2.3.4.5", "1.2.3.a", "1"], rejects=["127.0.0.1", "999.0.0.1", "1.2.3.4."])
