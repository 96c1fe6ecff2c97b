"""The server process: uvicorn with the settings' addresses and certificates, and an end that streams survive or are told of."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from api.scopes import BODY_SEND
from api.service import Service
from api.settings import Settings
from api.ws_protocol import WebSocketProtocol

GC_THRESHOLDS = (10_000, 10, 10)
"""A step of many streams makes thousands of objects, of which those in logs live on."""
FAREWELL_S = 5
"""What answers are given to send their last event, once the grace is over."""


class GracefulServer(uvicorn.Server):
    """Once it is told to stop it takes nothing new; what runs may finish within the grace, and is then told `shutting_down`."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(_config(app, settings))
        self._app = app
        self._grace_s = settings.shutdown_grace_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """What is loaded by now stays: without it, the collector has only what requests leave behind to look through."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service: Service | None = getattr(self._app.state, "service", None)
        draining = asyncio.create_task(service.drain(self._grace_s)) if service is not None else None
        try:
            await super().shutdown(sockets)
        finally:
            if draining is not None:
                draining.cancel()


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        _with_body_send(app),
        host=settings.host,
        port=settings.port,
        ws=WebSocketProtocol,
        log_config=None,
        log_level=settings.log_level,
        access_log=False,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        ssl_keyfile_password=settings.tls_key_password,
        ssl_ca_certs=None if settings.tls_client_ca is None else str(settings.tls_client_ca),
        ssl_cert_reqs=_cert_requirement(settings),
        forwarded_allow_ips=settings.trusted_proxies,
        root_path=settings.root_path,
        server_header=False,
        timeout_graceful_shutdown=int(settings.shutdown_grace_s) + FAREWELL_S,
    )


def _with_body_send(app: ASGIApp) -> ASGIApp:
    """The app, whose streams give the parts of their bodies to the server itself."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope[BODY_SEND] = send
        await app(scope, receive, send)

    return serve


def _cert_requirement(settings: Settings) -> int:
    """A client's certificate is asked for where there is an authority to judge it."""
    return ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED
