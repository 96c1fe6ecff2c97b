"""Fixtures of the browser's tests: one headless Chromium and one stub service a module, one page a test.

They end with their module: Playwright's synchronous face keeps an event loop running in the thread, which the tests of
other modules must not find there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.browser_page import PATIENCE_MS, open_page
from tests.browser.service_stub import ServiceStub

CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]


# A first run may wait for kernels that are compiled in the meantime.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "Debian's chromium is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def stub_service() -> Iterator[ServiceStub]:
    with ServiceStub() as service:
        yield service


@pytest.fixture
def stub(stub_service: ServiceStub) -> ServiceStub:
    stub_service.reset()
    return stub_service


@pytest.fixture
def page(chromium: Browser, stub: ServiceStub) -> Iterator[Page]:
    """The page as the stub serves it."""
    with open_page(chromium, stub.url) as page:
        yield page
