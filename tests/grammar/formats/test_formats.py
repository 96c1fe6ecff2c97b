"""The tables as a whole: every name of 2020-12 is there, and the patterns keep to plain constructs."""

from __future__ import annotations

import re

import pytest

from constrained.grammar.formats import FORMATS, INEXACT, OLDER_FORMATS, Format, Strings

# JSON Schema 2020-12, Validation, section 7.3.
NAMES = {
    *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "iri"),
    *("uri-reference", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "regex"),
}
ALL = [*FORMATS.values(), *(form for older in OLDER_FORMATS.values() for form in older.values())]


def test_every_name_is_a_format_or_refused_with_a_reason() -> None:
    assert FORMATS.keys() | INEXACT.keys() == NAMES
    assert not FORMATS.keys() & INEXACT.keys()
    assert all(INEXACT.values())


@pytest.mark.parametrize("form", ALL, ids=lambda form: form.name)
def test_a_format_cites_its_source_and_says_what_it_leaves_open(form: Format) -> None:
    assert re.match(r"(RFC \d+|draft-[a-z-]+-\d+|ECMA-262), ", form.source)
    assert bool(form.why) == (form.wider is not None)


@pytest.mark.parametrize("form", ALL, ids=lambda form: form.name)
def test_the_patterns_keep_to_plain_constructs(form: Format) -> None:
    wider = form.wider or Strings(())
    for pattern in (*form.all_of, *form.none_of, *wider.all_of, *wider.none_of):
        bare = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\u\{[0-9A-F]+\}|\\[^A-Za-z0-9]", "x", pattern)
        assert not re.search(r"\\", bare), "an escape of a letter or digit"
        assert not re.search(r"\(\?[^:]", bare), "a lookaround or a named group"
        assert not re.search(r"\((?!\?:)", bare), "a capture"
        assert not re.search(r"[\^$]", bare), "an anchor"


@pytest.mark.parametrize("form", ALL, ids=lambda form: form.name)
def test_the_patterns_are_short(form: Format) -> None:
    assert sum(map(len, (*form.all_of, *form.none_of))) < 32_768
