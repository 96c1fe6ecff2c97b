"""Schema-bound JSON from language models: grammars, token masks, decoding and typed deltas.

Importing this package stays light: torch, transformers, numba and fastapi load only when what needs them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrained.batch import BatchMatcher as BatchMatcher
    from constrained.compiled import CompiledGrammar as CompiledGrammar
    from constrained.compiled import check_json_schema as check_json_schema
    from constrained.compiled import compile_json_schema as compile_json_schema
    from constrained.matcher import Matcher as Matcher
    from constrained.options import CompileOptions as CompileOptions
    from constrained.saved import load_grammar as load_grammar
    from constrained.saved import save_grammar as save_grammar
    from constrained.text_grammars import compile_choice as compile_choice
    from constrained.text_grammars import compile_json_object as compile_json_object
    from constrained.text_grammars import compile_lark as compile_lark
    from constrained.text_grammars import compile_regex as compile_regex
    from constrained.tokens.rows import MaskRow as MaskRow
    from constrained.tokens.vocabulary import Vocabulary as Vocabulary
    from constrained.warming import warm_up as warm_up

__version__ = "0.1.0"

_HOMES = {
    "BatchMatcher": "constrained.batch",
    "CompileOptions": "constrained.options",
    "CompiledGrammar": "constrained.compiled",
    "MaskRow": "constrained.tokens.rows",
    "Matcher": "constrained.matcher",
    "Vocabulary": "constrained.tokens.vocabulary",
    "check_json_schema": "constrained.compiled",
    "compile_choice": "constrained.text_grammars",
    "compile_json_object": "constrained.text_grammars",
    "compile_json_schema": "constrained.compiled",
    "compile_lark": "constrained.text_grammars",
    "compile_regex": "constrained.text_grammars",
    "load_grammar": "constrained.saved",
    "save_grammar": "constrained.saved",
    "warm_up": "constrained.warming",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
