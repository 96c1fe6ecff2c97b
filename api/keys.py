"""API keys: made once and shown once, kept as hashes in a TOML file.

A key is 32 random bytes, so one round of SHA-256 keeps it: there is nothing to guess.
"""

from __future__ import annotations

import hmac
import secrets
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from constrained.errors import OptionError

PREFIX = "ck-"


class KeyEntry(BaseModel):
    """One key of the file. Limits that are not given are those of the service; 0 is no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    requests_per_minute: int | None = Field(default=None, ge=0)
    concurrent_requests: int | None = Field(default=None, ge=0)


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    keys: list[KeyEntry]


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The keys that are known."""

    entries: tuple[KeyEntry, ...]

    def find(self, key: str) -> KeyEntry | None:
        """Whose key it is; takes the same time for every key that is not known."""
        digest = digest_of(key)
        found = None
        for entry in self.entries:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry
        return found


def new_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def entry_text(name: str, key: str) -> str:
    """The entry of a key, to be appended to the file."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'[[keys]]\nname = "{quoted}"\nsha256 = "{digest_of(key)}"\n'


def load_keys(file: Path) -> ApiKeys:
    """The keys of a file; `OptionError` where it cannot be read."""
    try:
        entries = _KeyFile.model_validate(tomllib.loads(file.read_text("utf-8"))).keys
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror}", "api_keys") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{file} is not TOML: {error}", "api_keys") from error
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise OptionError(f"{file}, {place}: {fault['msg']}", "api_keys") from error
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        raise OptionError(f"{file}: two keys have the same name", "api_keys")
    return ApiKeys(tuple(entries))
