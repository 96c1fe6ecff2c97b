"""The layers of the design: imports point downwards only, heavy libraries stay where they belong, no module cycle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("constrained", "api", "schemas")
BASE = frozenset({"constrained.errors", "constrained.options", "constrained.guide"})
TOKENS = BASE | {"constrained.tokens"}
GRAMMAR = BASE | {"constrained.grammar"}
AUTOMATON = TOKENS | GRAMMAR | {"constrained.automaton"}
MATCHER = AUTOMATON | {
    "constrained.matcher",
    "constrained.batch",
    "constrained.compiled",
    "constrained.warming",
    "constrained.saved",
}
DECODE = MATCHER | {"constrained.decode"}
STREAM = BASE | {"constrained.stream"}
CLIENT = STREAM | {"constrained.client", "schemas"}
API = DECODE | STREAM | {"constrained", "api", "schemas"}
TERMINAL = API | CLIENT | {"constrained.terminal"}

# What each part of this project may import of the others. A module belongs to the longest prefix of its name.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "schemas": frozenset({"schemas"}),
    "constrained.errors": frozenset(),
    "constrained.guide": frozenset(),
    "constrained.huge_pages": frozenset(),
    "constrained.options": BASE,
    "constrained.tokens": TOKENS,
    "constrained.grammar": GRAMMAR,
    "constrained.automaton": AUTOMATON,
    "constrained.matcher": AUTOMATON,
    "constrained.batch": MATCHER,
    "constrained.warming": MATCHER | {"constrained.huge_pages", "constrained.text_grammars"},
    "constrained.saved": MATCHER | {"constrained", "constrained.text_grammars"},
    "constrained.compiled": MATCHER,
    "constrained.text_grammars": MATCHER,
    "constrained.decode": DECODE,
    "constrained.stream": STREAM,
    "constrained.client": CLIENT,
    "constrained": MATCHER,
    "api": API,
    "constrained.terminal": TERMINAL,
    "constrained.cli": TERMINAL | {"constrained"},
    "constrained.__main__": frozenset({"constrained.cli"}),
}
# Every third-party module that a part may import at all; the parts that are not named may import whatever is installed.
THIRD_PARTY: dict[str, frozenset[str]] = {
    "schemas": frozenset({"pydantic"}),
    "constrained.errors": frozenset(),
    "constrained.options": frozenset({"referencing"}),
    "constrained.guide": frozenset(),
    "constrained.grammar": frozenset({"referencing", "jsonschema_specifications", "lark", "pydantic_core"}),
    "constrained.stream": frozenset(),
    "constrained.client": frozenset({"httpx", "pydantic", "pydantic_core", "websockets"}),
    "constrained": frozenset(),
}
NEVER_BELOW_DECODE = frozenset({"torch", "transformers", "tokenizers", "safetensors"})
NEVER_BELOW_API = frozenset({"fastapi", "starlette", "uvicorn", "prometheus_client"})


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def _part(module: str) -> str:
    """The longest prefix of the module's name that the tables know."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(prefix for prefix in prefixes if prefix in MAY_IMPORT)


def _type_checking_only(tree: ast.AST) -> set[ast.AST]:
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            guarded.update(inner for statement in node.body for inner in ast.walk(statement))
    return guarded


def _inside_functions(tree: ast.AST) -> set[ast.AST]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {inner for function in functions for inner in ast.walk(function)}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def _imports(module: str, *, at_load: bool = False) -> Iterator[str]:
    """Absolute names that a module imports, typing aside; `at_load` leaves out what only a call of a function imports."""
    path, tree = MODULES[module], _tree(module)
    skipped = _type_checking_only(tree) | (_inside_functions(tree) if at_load else set())
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, path, node)
            yield from (f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names)


def _absolute(module: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    anchor = package[: len(package) - node.level + 1]
    return ".".join([*anchor, node.module] if node.module else anchor)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _is_allowed(name: str, parts: frozenset[str]) -> bool:
    """Whether one of `parts` is where the module belongs; `constrained` alone means its `__init__`, not all of it."""
    return _part(name) in parts if name in MODULES else name in parts


def _third_party(module: str) -> set[str]:
    tops = {name.partition(".")[0] for name in _imports(module) if not _is_ours(name)}
    return tops - sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    part = _part(module)
    allowed = MAY_IMPORT[part]
    upwards = {name for name in _imports(module) if _is_ours(name) and not _is_allowed(name, allowed)}
    assert not upwards, f"{part} may not import these"


@pytest.mark.parametrize("module", [name for name in MODULES if _part(name) in THIRD_PARTY])
def test_light_parts_import_only_what_they_may(module: str) -> None:
    assert _third_party(module) <= THIRD_PARTY[_part(module)]


@pytest.mark.parametrize("module", [name for name in MODULES if _part(name) != "constrained.decode"])
def test_only_decode_imports_torch(module: str) -> None:
    assert not _third_party(module) & NEVER_BELOW_DECODE


@pytest.mark.parametrize("module", [name for name in MODULES if _part(name) not in {"api", "constrained.terminal"}])
def test_only_the_service_imports_fastapi(module: str) -> None:
    assert not _third_party(module) & NEVER_BELOW_API


def test_no_module_cycle() -> None:
    graph = {
        module: {name for name in _imports(module, at_load=True) if name in MODULES and name != module} for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a module cycle: {' -> '.join(error.args[1])}")


def _loaded_by(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {"torch", "transformers", "numba", "numpy", "fastapi", "uvicorn"}


@pytest.mark.parametrize(
    ("statement", "never"),
    [
        ("import constrained", HEAVY | {"pydantic", "httpx"}),
        ("from constrained import CompileOptions; CompileOptions()", HEAVY),
        ("import schemas.events, schemas.requests", HEAVY | {"constrained", "httpx"}),
        ("import constrained.stream", HEAVY | {"pydantic"}),
        ("import constrained.client", HEAVY),
        ("import constrained.cli", HEAVY),
    ],
)
def test_what_an_import_loads(statement: str, never: set[str]) -> None:
    assert not _loaded_by(statement) & never
