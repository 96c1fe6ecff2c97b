"""The errors of the library, in one tree.

::

    ConstrainedError
    +-- CallerError                      the caller can mend it
    |   +-- SchemaError                  the schema; carries `pointer` and `keyword`
    |   |   +-- UnsupportedKeywordError  an assertion that cannot be enforced exactly
    |   |   +-- UnsatisfiableSchemaError no value meets the schema
    |   |   +-- UnresolvableReferenceError
    |   |   +-- FuelError                a compile limit ran out at `pointer`
    |   +-- OptionError                  an option: bad value, or not built yet
    |   +-- VocabularyError              a tokenizer whose bytes cannot be known exactly
    |   +-- RequestError                 one field of a request; carries `field`
    |       +-- UnknownModelError
    |       +-- ContextLengthError       the prompt does not fit the context
    |       +-- BudgetError              `max_tokens` cannot hold the smallest document
    +-- OverloadedError                  the service is full; the caller may try again
    +-- InternalError                    a broken invariant: our fault

Every error carries `code` (stable, for machines) and says what was found, where, and what would be accepted.
"""

from __future__ import annotations


class ConstrainedError(Exception):
    """Base of all errors that this project raises on purpose."""

    code = "error"
    retriable = False

    @property
    def place(self) -> str | None:
        """Where in the caller's input: a JSON Pointer or a field name; None where there is no such place."""
        return None


class CallerError(ConstrainedError):
    """The caller's input is at fault."""

    code = "invalid_request"


class SchemaError(CallerError):
    """A schema that is not a schema, or that cannot be compiled; `pointer` is a JSON Pointer into it."""

    code = "invalid_schema"

    def __init__(self, message: str, pointer: str = "", keyword: str | None = None) -> None:
        where = f"at {pointer or '/'}" + (f", keyword {keyword!r}" if keyword else "")
        super().__init__(f"{message} ({where})")
        self.message = message
        self.pointer = pointer
        self.keyword = keyword

    @property
    def place(self) -> str | None:
        return self.pointer if self.keyword is None else f"{self.pointer}/{self.keyword}"


class UnsupportedKeywordError(SchemaError):
    """An assertion that this version cannot enforce exactly; it is refused, never ignored."""

    code = "unsupported_keyword"


class UnsatisfiableSchemaError(SchemaError):
    """No JSON value meets the schema."""

    code = "unsatisfiable_schema"


class UnresolvableReferenceError(SchemaError):
    """A `$ref` that leads to nothing, or to a document that was not given."""

    code = "unresolvable_reference"


class FuelError(SchemaError):
    """A compile limit (alternatives, nodes, states) ran out; the message names the limit."""

    code = "schema_too_complex"


class OptionError(CallerError):
    """An option with a value that is unknown, or that is not built yet; `option` is its name."""

    code = "invalid_option"

    def __init__(self, message: str, option: str) -> None:
        super().__init__(f"{message} (option {option!r})")
        self.option = option

    @property
    def place(self) -> str | None:
        return self.option


class VocabularyError(CallerError):
    """A tokenizer whose token bytes cannot be known exactly."""

    code = "unsupported_tokenizer"


class RequestError(CallerError):
    """One field of a request is wrong; `field` names it."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    @property
    def place(self) -> str | None:
        return self.field


class UnknownModelError(RequestError):
    """A model that this service does not serve."""

    code = "model_not_found"


class ContextLengthError(RequestError):
    """The prompt leaves no room in the model's context."""

    code = "context_length_exceeded"


class BudgetError(RequestError):
    """`max_tokens` cannot hold the smallest document of the schema."""

    code = "max_tokens_too_small"


class OverloadedError(ConstrainedError):
    """The queue is full."""

    code = "overloaded"
    retriable = True


class InternalError(ConstrainedError):
    """An invariant of ours broke."""

    code = "internal_error"
