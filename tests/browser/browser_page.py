"""Opening the page so that nothing goes wrong unseen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page

# Chromium logs each answer that is not 2xx; the page shows those itself, and tests look there.
REFUSED = "Failed to load resource"
PATIENCE_MS = 120_000


@contextmanager
def open_page(chromium: Browser, url: str, **context: Any) -> Iterator[Page]:
    """The page at `url` in a context of its own; an uncaught error, or one in the console, fails the test at the end."""
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and REFUSED not in message.text:
            errors.append(message.text)

    with chromium.new_context(**context) as opened:
        opened.set_default_timeout(PATIENCE_MS)
        page = opened.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", note)
        page.goto(url)
        yield page
    assert errors == []
