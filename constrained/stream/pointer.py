"""JSON Pointers (RFC 6901) as text: one token onto a path, and a path back into its tokens."""

from __future__ import annotations


def join(parent: str, token: str | int) -> str:
    """The path of the member or element `token` of the container at `parent`."""
    if isinstance(token, int):
        return f"{parent}/{token}"
    return f"{parent}/{token.replace('~', '~0').replace('/', '~1')}"


def unescape(token: str) -> str:
    """A reference token as the key that it means; `ValueError` where `~` is not followed by 0 or 1."""
    if "~" not in token:
        return token
    if any(part[:1] not in ("0", "1") for part in token.split("~")[1:]):
        raise ValueError(f"{token!r} is not a JSON Pointer token: '~' must be followed by 0 or 1")
    return token.replace("~1", "/").replace("~0", "~")


def split(path: str) -> list[str]:
    """The keys and indices along `path`, unescaped, as text; `ValueError` where it is not a pointer."""
    if not path:
        return []
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not a JSON Pointer: it is neither empty nor begins with '/'")
    return [unescape(token) for token in path[1:].split("/")]
