"""This project with every text that JSON allows: any order of keys, every spelling, formats as annotations.

`$SUITE_REMOTES` is a folder whose files schemas may refer to as http://localhost:1234/..., as the official suite means them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import referencing
import referencing.jsonschema

import constrained
from benchmarks.engines.base import CompileRefusal
from benchmarks.engines.ours import OurGrammar
from constrained import CompileOptions, compile_json_schema
from constrained.errors import SchemaError, UnsatisfiableSchemaError
from constrained.tokens.vocabulary import Vocabulary


class FullEngine:
    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None:
        self.version = constrained.__version__
        self.vocabulary = vocabulary
        self.options = CompileOptions(
            property_order="any", spelling="permissive", formats="annotate", registry=_remotes(os.environ.get("SUITE_REMOTES"))
        )

    def compile(self, schema: str) -> OurGrammar:
        try:
            return OurGrammar(compile_json_schema(json.loads(schema), self.vocabulary, self.options))
        except UnsatisfiableSchemaError:
            raise CompileRefusal("unsatisfiable") from None
        except SchemaError as error:
            raise CompileRefusal(error.code, error.message) from error


def _remotes(folder: str | None) -> referencing.Registry[Any]:
    registry: referencing.Registry[Any] = referencing.Registry()
    for path in sorted(Path(folder).rglob("*.json")) if folder else ():
        name = f"http://localhost:1234/{path.relative_to(folder or '').as_posix()}"
        contents = json.loads(path.read_text(encoding="utf-8"))
        resource = referencing.Resource.from_contents(contents, referencing.jsonschema.DRAFT202012)
        registry = registry.with_resource(name, resource)
    return registry


ENGINE = FullEngine
