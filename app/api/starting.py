"""The door while the models load: alive at once, ready when everything is."""

import json
from typing import Any

from litestar.types import ASGIApp, Receive, Scope, Send

STARTING = {
    "type": "about:blank",
    "title": "Service Unavailable",
    "status": 503,
    "detail": "the service is starting: models are being loaded",
}


class StartingGate:
    """An ASGI application that answers for the real one until that one is there.

    `/health/live` is 200 from the first moment; everything else is a problem with Retry-After.
    """

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    def open(self, app: ASGIApp) -> None:
        """From now on every request goes to `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _answer(scope["path"], send)


async def _answer(path: str, send: Any) -> None:
    alive = path == "/health/live"
    body = json.dumps({"status": "alive"} if alive else STARTING | {"instance": path}).encode()
    kind = b"application/json" if alive else b"application/problem+json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 200 if alive else 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
