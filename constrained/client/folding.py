"""The ops of a delta into a fold, straight from their JSON: checked as the wire's models would, at a fraction of the cost.

An op of the usual shape goes to the fold, which judges what it says. Any other is read by its model, which has the last word.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from constrained.client.errors import ProtocolError
from constrained.stream import Fold, from_wire
from schemas.events import OP


def apply_op(fold: Fold, op: Any) -> None:
    """Takes the next op; `FoldError` where it cannot come here, `ProtocolError` where it is none."""
    try:
        kind, num_fields = op["op"], len(op)
        if kind == "text" and num_fields == 3:
            fold.text(op["path"], op["add"])
        elif kind == "set" and num_fields == 3:
            fold.set(op["path"], op["value"])
        elif kind == "close" and num_fields == 2:
            fold.close(op["path"])
        elif kind == "open" and num_fields == 3:
            fold.open(op["path"], op["type"])
        else:
            _apply_model(fold, op)
    except (AttributeError, KeyError, TypeError):  # nothing has been changed by an op that is not what it seemed
        _apply_model(fold, op)


def _apply_model(fold: Fold, op: Any) -> None:
    try:
        model = OP.validate_python(op)
    except ValidationError as error:
        raise ProtocolError(f"malformed delta event: {error}") from error
    fold.apply(from_wire(vars(model)))
