"""One mapping for the whole tree of errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.errors import INTERNAL_MESSAGE, answer_of, error_info, status_of
from constrained import errors


def tree(kind: type[errors.ConstrainedError] = errors.ConstrainedError) -> Iterator[type[errors.ConstrainedError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


def test_every_class_says_whose_fault_it_is() -> None:
    for kind in tree():
        status = status_of(kind.__new__(kind))
        assert (400 <= status < 500) == issubclass(kind, errors.CallerError), kind


@pytest.mark.parametrize(
    ("error", "status", "param", "code"),
    [
        (errors.UnsupportedKeywordError("no", "/a", "pattern"), 400, "/a/pattern", "unsupported_keyword"),
        (errors.UnsatisfiableSchemaError("no"), 400, "schema", "unsatisfiable_schema"),
        (errors.OptionError("no", "whitespace"), 400, "whitespace", "invalid_option"),
        (errors.BudgetError("no", "max_tokens"), 400, "max_tokens", "max_tokens_too_small"),
        (errors.UnknownModelError("no", "model"), 404, "model", "model_not_found"),
        (errors.BodyTooLargeError("no"), 413, None, "body_too_large"),
        (errors.OverloadedError("later"), 503, None, "overloaded"),
        (errors.InternalError("secret"), 500, None, "internal_error"),
        (ValueError("secret"), 500, None, "internal_error"),
    ],
)
def test_status_place_and_code(error: Exception, status: int, param: str | None, code: str) -> None:
    info = error_info(error)
    assert (status_of(error), info.param, info.code) == (status, param, code)
    assert "secret" not in info.message


def test_what_only_fails_again_says_so() -> None:
    assert answer_of(errors.BudgetError("no")).headers["x-should-retry"] == "false"
    overloaded = answer_of(errors.OverloadedError("later"))
    assert "x-should-retry" not in overloaded.headers
    assert overloaded.headers["retry-after"] == "1"


def test_a_fault_of_ours_keeps_its_detail() -> None:
    assert error_info(errors.StreamError("byte 0xff", 3)).message == INTERNAL_MESSAGE
