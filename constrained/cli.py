"""The command line: serve, key, generate, check, models, demo, protocol.

Only parses arguments and shows results. Whatever is heavy is imported by the command that needs it, so that `--help` is quick.
What the caller can mend ends in one line on stderr and exit code 2.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

from constrained import __version__
from constrained.errors import CallerError, ConstrainedError, InternalError, OptionError, RequestError
from constrained.options import CompileOptions

EXIT_REFUSED = 1
EXIT_CALLER = 2
STDIN = "-"
PIPED_WIDTH = 1000  # lines for another program are not folded

app = typer.Typer(
    help="Schema-bound JSON from language models, streamed while it is generated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)


class WhitespaceChoice(StrEnum):
    """Layouts that `--whitespace` takes."""

    flexible = "flexible"
    compact = "compact"
    indented = "indented"


class LogLevel(StrEnum):
    """Levels that `--log-level` takes."""

    error = "error"
    warning = "warning"
    info = "info"
    debug = "debug"


ModelOption = Annotated[str | None, typer.Option(help="Local folder or hub id of a causal LM; the default model if not given.")]
WhitespaceOption = Annotated[WhitespaceChoice, typer.Option(help="Layout of the document.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 if not given.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 8000 if not given.")] = None,
    model: ModelOption = None,
    max_batch: Annotated[int | None, typer.Option(min=1, help="Sequences that are generated at once.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16, int8 or auto.")] = None,
    speculate: Annotated[int | None, typer.Option(min=0, max=15, help="Tokens to guess ahead at each step.")] = None,
    draft_model: Annotated[str | None, typer.Option(help="Smaller model that guesses ahead.")] = None,
    log_level: Annotated[LogLevel | None, typer.Option(help="What the service logs; warnings if not given.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see docs/deploy.md.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Show one sample request once the service is up.")] = False,
) -> None:
    """Run the service until Ctrl-C. Flags weigh more than CONSTRAINED_* in the environment, and these more than the file."""
    _calm_openmp()
    from api.settings import load_settings
    from constrained.terminal.serving import serve as run

    flags = {
        "host": host,
        "port": port,
        "model": model,
        "max_batch": max_batch,
        "dtype": dtype,
        "speculate": speculate,
        "draft_model": draft_model,
        "log_level": log_level and log_level.value,
    }
    settings = load_settings(config, **flags, **_assignments(setting or []))
    if settings.model is None:
        _prepare_model()
    run(settings, out, sample)


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
) -> None:
    """Make an API key: it is shown once, on stderr; the entry for the file of keys goes to stdout."""
    from api.keys import entry_text, new_key

    made = new_key()
    err.print(f"The key, which nobody can read again: {made}", highlight=False, soft_wrap=True, markup=False)
    print(entry_text(name, made), end="")


@app.command()
def generate(
    schema: Annotated[str, typer.Option(help="File with a JSON Schema, or - for stdin.")],
    prompt: Annotated[str, typer.Option(help="What the user says.")],
    model: ModelOption = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of the document.")] = 1024,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 1.0,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same document.")] = None,
    whitespace: WhitespaceOption = WhitespaceChoice.flexible,
    form: Annotated[
        bool | None, typer.Option("--form/--raw", help="Show a form, or print the JSON; if not given, a form in a terminal.")
    ] = None,
    schema_in_prompt: Annotated[bool, typer.Option(help="Tell the model its schema.")] = True,
) -> None:
    """Generate one document here, without a server."""
    document = _read_schema(schema)
    _calm_openmp()
    from constrained.decode.model import load_model
    from constrained.decode.prompt import SchemaPrompt
    from constrained.decode.request import SamplingParams
    from constrained.terminal.local import prepare, run

    if model is None:
        _prepare_model()
    request = prepare(
        load_model(model),
        document,
        [{"role": "user", "content": prompt}],
        SamplingParams(temperature=temperature, seed=seed, max_tokens=max_tokens),
        CompileOptions(whitespace=whitespace.value),
        SchemaPrompt() if schema_in_prompt else None,
    )
    in_terminal = sys.stdout.isatty()
    console = None if form is False or (form is None and not in_terminal) else (out if in_terminal else err)
    text = run(request, console)
    if console is not out:
        print(text)


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="File with a JSON Schema, or - for stdin.")],
    whitespace: WhitespaceOption = WhitespaceChoice.flexible,
) -> None:
    """Tell whether a schema is supported, keyword by keyword; exit code 1 if it is refused."""
    schema = _read_schema(file)
    from constrained.compiled import check_json_schema
    from constrained.terminal.report import rendered

    report = check_json_schema(schema, CompileOptions(whitespace=whitespace.value))
    _print(rendered(report))
    if not report.supported:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def models(
    prepare: Annotated[bool, typer.Option("--prepare", help="Convert the default model first, if that is not done.")] = False,
) -> None:
    """List the models that can be used without a download."""
    from rich.table import Column, Table

    from constrained.decode.catalogue import list_models

    if prepare:
        _prepare_model()
    table = Table(Column("model", no_wrap=True), Column("state", no_wrap=True), Column("folder", overflow="fold"), box=None)
    for entry in list_models():
        state = "ready" if entry.ready else "not converted yet"
        table.add_row(entry.name + (" (default)" if entry.is_default else ""), state, str(entry.path))
    _print(table)


@app.command()
def demo(
    url: Annotated[str, typer.Option(help="Address of a running service.")] = "http://127.0.0.1:8000",
) -> None:
    """Run the sample request against a service and show it as a form."""
    from constrained.terminal.sample import show_sample

    show_sample(url, out)


@app.command()
def protocol(
    typescript: Annotated[
        bool, typer.Option("--typescript/--json-schema", help="As type declarations, or as a JSON Schema.")
    ] = False,
) -> None:
    """Print the messages of the native protocol for other languages."""
    from schemas import export

    print(export.typescript() if typescript else json.dumps(export.json_schema(), indent=2, ensure_ascii=False))


def _assignments(given: list[str]) -> dict[str, Any]:
    """Settings by `NAME=VALUE`, the value JSON where it can be read so, else text."""
    values: dict[str, Any] = {}
    for assignment in given:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise OptionError(f"{assignment!r} is not NAME=VALUE", "set")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def _read_schema(file: str) -> Any:
    """The JSON in a file, or on stdin; `RequestError` where it cannot be read."""
    try:
        text = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise RequestError(f"cannot read {file}: {error.strerror}", "schema") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{'stdin' if file == STDIN else file} is not JSON: {error}", "schema") from error


def _print(shown: RenderableType) -> None:
    Console(width=None if out.is_terminal else PIPED_WIDTH).print(shown)


def _calm_openmp() -> None:
    # OpenMP threads that spin while they wait take the core from whatever else runs, and a decode step then waits for that.
    # The library reads this once, when torch loads it.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _prepare_model() -> None:
    """Convert the default model where that is not done, with a progress bar."""
    from constrained.decode.catalogue import DEFAULT_MODEL, default_model_folder

    if default_model_folder().is_dir():
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    err.print(f"Preparing {DEFAULT_MODEL}, once (about half a minute):", highlight=False)
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("loading torch", total=1.0)
        from constrained.decode.convert import prepare_default_model

        prepare_default_model(lambda stage, share: bar.update(task, description=stage, completed=share))


def main(arguments: list[str] | None = None) -> None:
    """The entry point; what the caller can mend is one line on stderr."""
    try:
        app(arguments)
    except InternalError:
        raise
    except ConstrainedError as error:
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(EXIT_CALLER if isinstance(error, CallerError) else EXIT_REFUSED)
