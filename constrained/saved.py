"""Compiled grammars as files: `save_grammar` and `load_grammar`.

The format, version 1, is one JSON object in UTF-8: `format` "constrained-grammar", `version` 1, `library` (the version that
wrote it), `vocabulary` (its fingerprint), `kind` ("schema", "regex", "choice", or "grammar" for one in Lark's syntax), `source`
(what the caller gave), `options` (those of `CompileOptions`, by name) and `hash` (`CompiledGrammar.schema_hash`). It holds no
code.

Loading compiles the source again, so a file can never say anything else than its source does. To store what the compile found
does not pay: on large schemas of MaskBench (150 kB) a compile takes about 60 ms, and Python's own pickle, which no file from
elsewhere may be given to, needs 13 ms for its nodes; a reader that only makes known values is several times slower.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained.errors import SavedGrammarError
from constrained.options import CompileOptions, Limits

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar
    from constrained.tokens.vocabulary import Vocabulary

FORMAT, VERSION = "constrained-grammar", 1
_NAMES = {"format", "version", "library", "vocabulary", "kind", "source", "options", "hash"}


def save_grammar(grammar: CompiledGrammar, path: Path | str) -> None:
    """Write a grammar to a file. Raises `SavedGrammarError` for one whose `$ref`s reach into a registry of documents."""
    if grammar.options.registry is not None:
        raise SavedGrammarError("a grammar with a registry of documents cannot be saved: put them into the schema's $defs")
    options = {f.name: getattr(grammar.options, f.name) for f in fields(CompileOptions) if f.name != "registry"}
    options |= {"limits": asdict(grammar.options.limits), "custom_formats": dict(grammar.options.custom_formats)}
    kind, source = grammar.source_of
    saved = {
        "format": FORMAT,
        "version": VERSION,
        "library": _library(),
        "vocabulary": grammar.vocabulary.fingerprint,
        "kind": kind,
        "source": source,
        "options": options,
        "hash": grammar.schema_hash,
    }
    Path(path).write_text(json.dumps(saved), encoding="utf-8")


def load_grammar(path: Path | str, vocabulary: Vocabulary) -> CompiledGrammar:
    """Read a grammar that `save_grammar` wrote, for the vocabulary that it was compiled for.

    Raises `SavedGrammarError` for any other file, version, vocabulary or content; and whatever a compile may raise.
    """
    saved = _read(path)
    if saved["vocabulary"] != vocabulary.fingerprint:
        raise SavedGrammarError(f"{path}: saved for another vocabulary than the one given (by their fingerprints)")
    try:
        options = CompileOptions(**(saved["options"] | {"limits": Limits(**saved["options"]["limits"])}))
    except (TypeError, KeyError) as error:
        raise SavedGrammarError(f"{path}: options that this version does not know: {error}") from error
    grammar = _compiled(path, saved["kind"], saved["source"], vocabulary, options)
    if grammar.schema_hash != saved["hash"]:
        raise SavedGrammarError(f"{path}: the source is not the one that was saved (by its hash)")
    return grammar


def _read(path: Path | str) -> dict[str, Any]:
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise SavedGrammarError(f"{path}: not a saved grammar: {error}") from error
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise SavedGrammarError(f"{path}: not a saved grammar; its format must be {FORMAT!r}")
    if saved.get("version") != VERSION:
        raise SavedGrammarError(f"{path}: version {saved.get('version')!r} of the format; this library reads {VERSION}")
    if missing := _NAMES - saved.keys():
        raise SavedGrammarError(f"{path}: without {', '.join(sorted(missing))}")
    if saved["library"] != _library():
        raise SavedGrammarError(
            f"{path}: saved by version {saved['library']} of this library, which is {_library()}: save it anew"
        )
    if not isinstance(saved["options"], dict):
        raise SavedGrammarError(f"{path}: options must be an object")
    return saved


def _compiled(path: Path | str, kind: str, source: Any, vocabulary: Vocabulary, options: CompileOptions) -> CompiledGrammar:
    from constrained.compiled import compile_json_schema
    from constrained.text_grammars import compile_choice, compile_lark, compile_regex

    match kind:
        case "schema":
            return compile_json_schema(source, vocabulary, options)
        case "regex":
            return compile_regex(source, vocabulary)
        case "choice":
            return compile_choice(source, vocabulary)
        case "grammar":
            return compile_lark(source["grammar"], vocabulary, options, start=source["start"], schemas=source["schemas"])
    raise SavedGrammarError(f"{path}: kind {kind!r}; known are schema, regex, choice and grammar")


def _library() -> str:
    from constrained import __version__

    return __version__
