"""The command line: exit codes, one-line errors, what goes to stdout, and that it starts light."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from constrained import __version__, cli
from constrained.decode.catalogue import DEFAULT_MODEL

if TYPE_CHECKING:
    from constrained.decode.model import LoadedModel

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "level": {"enum": ["low", "high"]}},
    "required": ["name", "level"],
    "additionalProperties": False,
}
COMMAND = [sys.executable, "-m", "constrained"]


def run(*arguments: str) -> int:
    """The exit code of one call in this process."""
    try:
        cli.main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def write(tmp_path: Path, schema: Any) -> str:
    path = tmp_path / "written.json"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return str(path)


# -- starting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["generate", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom constrained.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as end: assert not end.code\n"
        "print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert loaded[0] == "loaded"
    assert not {"torch", "transformers", "numba", "numpy", "fastapi", "httpx"} & set(loaded)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == __version__


def test_module_and_script_are_one_program() -> None:
    by_module = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    script = Path(sys.executable).with_name("constrained")
    by_script = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert by_module.stdout == by_script.stdout


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dance") == 2
    assert "dance" in capsys.readouterr().err


# -- check -----------------------------------------------------------------------------------------------------------


def test_check_tells_each_keyword_of_a_supported_schema(schema_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", schema_file) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["enforced", "/properties/name/maxLength"] for line in lines)
    shortest = len('{"name":"","level":"low"}')
    assert lines[-1].strip().startswith("supported")
    assert f"{shortest} bytes" in lines[-1]


def test_check_refuses_a_keyword_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"properties": {"x": {"$dynamicRef": "#nowhere"}}}
    assert run("check", write(tmp_path, schema)) == 1
    out = capsys.readouterr().out
    assert "/properties/x" in out
    assert "$dynamicRef" in out
    assert "refused:" in out


@pytest.mark.parametrize("schema", [{"type": "string", "minLength": 3, "maxLength": 2}, False, {"type": 7}])
def test_check_refuses_what_nothing_satisfies_and_what_is_no_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: Any
) -> None:
    assert run("check", write(tmp_path, schema)) == 1
    assert "refused:" in capsys.readouterr().out


def test_check_reads_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"true")))
    assert run("check", "-") == 0
    assert "supported" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"), [("{", "is not JSON"), ("[" * 100_000, "is not JSON"), ('{"a": "\xff"}', "is not JSON")]
)
def test_a_file_that_is_not_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str) -> None:
    path = tmp_path / "schema.json"
    path.write_bytes(text.encode("latin-1"))
    assert run("check", str(path)) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", str(tmp_path / "none.json")) == 2
    assert "No such file" in capsys.readouterr().err


# -- models ----------------------------------------------------------------------------------------------------------


def test_models_lists_the_default_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("models") == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert f"{DEFAULT_MODEL} (default)" in first
    assert "not converted yet" in first


# -- generate --------------------------------------------------------------------------------------------------------


@pytest.fixture
def generate(schema_file: str, real_model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `generate` with the model that this worker has loaded already; gives the exit code."""
    monkeypatch.setattr("constrained.decode.model.load_model", lambda name: real_model)
    return lambda *more: run("generate", "--schema", schema_file, "--prompt", "Anna is good at chess.", *more)


@pytest.mark.model
def test_generate_prints_one_valid_document_and_the_seed_decides_it(
    generate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for _ in range(2):
        assert generate("--max-tokens", "60", "--seed", "7") == 0
        texts.append(capsys.readouterr().out)
    jsonschema.validate(json.loads(texts[0]), SCHEMA)
    assert texts[0] == texts[1]


@pytest.mark.model
def test_generate_can_show_the_form_beside_the_json(generate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--form", "--max-tokens", "60", "--temperature", "0", "--whitespace", "compact") == 0
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert printed.out == json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert f"✓ level {value['level']}" in printed.err


@pytest.mark.model
def test_a_budget_that_cannot_hold_the_smallest_document(
    generate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate("--max-tokens", "2") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


def test_generate_with_an_unknown_model(schema_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", "--schema", schema_file, "--prompt", "p", "--model", "nobody/no-such-model") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: the model 'nobody/no-such-model'")


def test_generate_reads_the_schema_before_it_loads_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", "--schema", write(tmp_path, "{"), "--prompt", "p") == 2
    assert "is not JSON" in capsys.readouterr().err


# -- serve and demo --------------------------------------------------------------------------------------------------


def test_demo_without_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert run("demo", "--url", f"http://127.0.0.1:{bound.getsockname()[1]}") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: no answer")
    assert error.count("\n") == 1


def test_serve_on_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("serve", "--port", str(port), "--model", "nobody/no-such-model") == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "nonsense=1"], "nonsense"),
        (["--set", "heartbeat_s=soon"], "heartbeat_s"),
        (["--set", "port"], "NAME=VALUE"),
        (["--config", "no-such-file.toml"], "no-such-file.toml"),
    ],
)
def test_serve_with_wrong_settings(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert told in error


def test_serve_takes_settings_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "constrained.toml"
    config.write_text('model = "some/model"\nmax_batch = 3\nport = 1\n', "utf-8")
    monkeypatch.setenv("CONSTRAINED_MAX_BATCH", "4")
    served: list[Any] = []
    monkeypatch.setattr("constrained.terminal.serving.serve", lambda settings, *_: served.append(settings))
    arguments = ["--port", "2", "--set", 'cors_origins=["*"]', "--set", "otlp_endpoint=http://traces.example"]
    assert run("serve", "--config", str(config), *arguments) == 0
    (settings,) = served
    assert (settings.model, settings.max_batch, settings.port) == ("some/model", 4, 2)
    assert (settings.cors_origins, settings.otlp_endpoint) == (("*",), "http://traces.example")


def test_key_makes_an_entry_that_lets_its_key_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from api.keys import load_keys

    assert run("key", "web app") == 0
    printed = capsys.readouterr()
    made = printed.err.split()[-1]
    assert made not in printed.out
    file = tmp_path / "keys.toml"
    file.write_text(printed.out, "utf-8")
    found = load_keys(file).find(made)
    assert found is not None
    assert found.name == "web app"


def test_serve_with_an_unknown_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--port", "0", "--model", "nobody/no-such-model") == 2
    assert "error: the model 'nobody/no-such-model'" in capsys.readouterr().err


@pytest.mark.model
def test_serve_shows_the_sample_says_where_the_page_is_and_stops_at_ctrl_c() -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    arguments = [*COMMAND, "serve", "--port", "0", "--sample"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as service:
        assert service.stdout is not None
        lines = []
        for line in service.stdout:
            lines.append(line.rstrip())
            if line.startswith("The page is at "):
                break
        service.send_signal(signal.SIGINT)
        _, errors = service.communicate()
    text = "\n".join(lines)
    assert "✓ name" in text, errors
    assert "valid: " in text
    assert "http://127.0.0.1:" in lines[-1]
    assert service.returncode == 0, errors
