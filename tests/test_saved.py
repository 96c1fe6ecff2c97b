"""Grammars saved and loaded: the same language, and a clear error for anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from referencing import Registry

from constrained import (
    CompiledGrammar,
    CompileOptions,
    compile_choice,
    compile_json_schema,
    compile_lark,
    compile_regex,
    load_grammar,
    save_grammar,
)
from constrained.errors import SavedGrammarError
from constrained.options import Limits
from tests.grammars import accepts, awkward_vocabulary, byte_vocabulary
from tests.test_matcher import PERSON

OPTIONS = CompileOptions(whitespace="compact", custom_formats={"code": "^[a-z]+$"}, limits=Limits(max_states=1000))
GRAMMARS = {
    "schema": (compile_json_schema(PERSON, byte_vocabulary(), OPTIONS), '{"name":"bob"}', '{"name": "bob"}'),
    "regex": (compile_regex("a{2,3}", byte_vocabulary()), "aaa", "a"),
    "choice": (compile_choice(["yes", "no"], byte_vocabulary()), "no", "noo"),
    "grammar": (
        compile_lark('start: "(" JSON ")"', byte_vocabulary(), OPTIONS, schemas={"JSON": {"type": "boolean"}}),
        "(true)",
        "(1)",
    ),
}


@pytest.mark.parametrize("kind", GRAMMARS)
def test_what_is_loaded_is_what_was_saved(kind: str, tmp_path: Path) -> None:
    grammar, good, bad = GRAMMARS[kind]
    save_grammar(grammar, tmp_path / "grammar.json")
    loaded = load_grammar(tmp_path / "grammar.json", byte_vocabulary())
    assert (loaded.schema_hash, loaded.options, loaded.source_of) == (grammar.schema_hash, grammar.options, grammar.source_of)
    assert loaded.source_of[0] == kind
    for each in (grammar, loaded):
        assert accepts(each, good)
        assert not accepts(each, bad)


def saved(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "grammar.json"
    save_grammar(GRAMMARS["schema"][0], path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "zip"}, "its format must be 'constrained-grammar'"),
        ({"version": 2}, "version 2 of the format; this library reads 1"),
        ({"library": "0.0.1"}, "saved by version 0.0.1"),
        ({"source": {"type": "null"}}, "not the one that was saved"),
        ({"kind": "magic"}, "kind 'magic'"),
        ({"options": []}, "options must be an object"),
        ({"options": {"limits": {}, "colour": 1}}, "options that this version does not know: .*colour"),
        ({"options": {}}, "options that this version does not know"),
    ],
)
def test_other_files_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SavedGrammarError, match=message):
        load_grammar(saved(tmp_path, **changes), byte_vocabulary())


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SavedGrammarError, match="another vocabulary"):
        load_grammar(saved(tmp_path), awkward_vocabulary())


@pytest.mark.parametrize("text", ["", "[]", "\x80", '{"format": "constrained-grammar", "version": 1}'])
def test_what_is_no_grammar_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text.encode("latin-1"))
    with pytest.raises(SavedGrammarError, match=r"not a saved grammar|without hash"):
        load_grammar(tmp_path / "file", byte_vocabulary())


def test_a_registry_cannot_be_saved(tmp_path: Path) -> None:
    registry: Registry[Any] = Registry()
    grammar: CompiledGrammar = compile_json_schema(True, byte_vocabulary(), CompileOptions(registry=registry))
    with pytest.raises(SavedGrammarError, match="registry of documents cannot be saved"):
        save_grammar(grammar, tmp_path / "file")
