"""The door while the models load: alive at once, ready when everything is."""

import json

from app.api.access import KeylessAccess
from app.api.asgi import App, Receive, Scope, Send, respond
from app.api.edge import Edge

RETRY_AFTER = ("Retry-After", "1")


class StartingGate:
    """An ASGI application that answers for the real one until that one is there.

    `/health/live` is 200 from the first moment; everything else is a problem with Retry-After.
    """

    def __init__(self, *, anonymous_search: bool = False) -> None:
        self._app: App = Edge(app=_starting, access=KeylessAccess(anonymous_search=anonymous_search))

    def open(self, app: App) -> None:
        """From now on every request goes to `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _starting(scope: Scope, _receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    scope["path_template"] = scope["path"] if scope["path"].startswith("/health/") else "starting"
    if scope["path"] == "/health/live":
        await respond(send, 200, b'{"status":"alive"}', "application/json")
        return
    problem = {
        "type": "urn:kroshka:problem:starting",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "the service is starting: models are being loaded",
        "instance": scope["path"],
    }
    await respond(send, 503, json.dumps(problem).encode(), "application/problem+json", [RETRY_AFTER])
