"""The service in this process: the model first, then uvicorn, then the sample request where it is asked for."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import uvicorn
from rich.console import Console

from constrained.errors import ConstrainedError, RequestError
from constrained.terminal.sample import show_sample

if TYPE_CHECKING:
    from api.settings import Settings


def serve(settings: Settings, console: Console, sample: bool = False) -> None:
    """Serve until Ctrl-C. Raises `RequestError` where the address is taken, and what loading the model raises."""
    from api import logs
    from api.app import create_app
    from api.backend import load_backend
    from api.server import GracefulServer

    logs.configure(settings.log_level, settings.log_format)
    with contextlib.closing(_bind(settings.host, settings.port)) as listener:
        url = _url(settings, listener.getsockname()[1])
        with console.status("loading the model"):
            backend = load_backend(settings)
        server = GracefulServer(create_app(settings, backend), settings)
        threading.Thread(target=_greet, args=(server, url, console, sample), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet: until the model is loaded, a connection is refused and does not hang."""
    with contextlib.ExitStack() as undo:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = undo.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            raise RequestError(f"cannot listen on {host}:{port}: {error.strerror}", "port") from error
        undo.pop_all()
    return listener


def _url(settings: Settings, port: int) -> str:
    host = settings.host
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{'http' if settings.tls_certificate is None else 'https'}://{shown}:{port}"


def _greet(server: uvicorn.Server, url: str, console: Console, sample: bool) -> None:
    """On a thread of its own: wait until the service is up, run the sample, say where the page is."""
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.05)
    if sample:
        try:
            show_sample(url, console)
        except ConstrainedError as error:
            console.print(f"the sample request failed: {error}", style="red", markup=False, highlight=False)
    console.print(f"\nThe page is at {url}/ and the service is up; Ctrl-C stops it.", style="bold", highlight=False)
