"""What is checked before a route's handler is called."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from app.api.access import NOBODY, may
from app.api.errors import Forbidden
from app.observability.metrics import Metrics

SCOPE = "scope"
"""The key in a route's `opt` that names the scope which it needs; without one, nobody may call it."""


class ScopeGuard:
    """Raises Forbidden when the caller was not granted what the route needs."""

    def __init__(self, *, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        if connection.scope.get("method") == "OPTIONS":  # only tells which methods there are
            return
        needed, granted = handler.opt.get(SCOPE, "platform"), connection.scope["state"].get("granted", NOBODY)
        if not may(granted, needed):
            self._metrics.request_refused("scope")
            raise Forbidden(f"this needs the scope {needed}", reason="scope")
