"""The outermost layer: request id, access check, security headers, access line and metrics, for every answer.

It wraps the framework instead of living in it, because the framework's own layers do not see 404 and 405.
"""

import re
import time
from collections.abc import Callable
from uuid import uuid4

import msgspec
import structlog

from app.api.access import NOBODY, KeylessAccess, Refusal
from app.api.asgi import App, Message, RawHeaders, Receive, Scope, Send, header, respond
from app.observability.metrics import Metrics

REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")
SECURITY_HEADERS: RawHeaders = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]
"""Defaults: an answer that sets one of them itself keeps its own."""

UNMATCHED = "unmatched"
CLIENT_GONE = 499
OPEN_PATHS = ("/health/live", "/health/ready")
QUIET_ROUTES = (*OPEN_PATHS, "/metrics")


class AnswerBroken(Exception):
    """Raised after the headers are out: the server must cut the connection. What happened is logged before."""


class Edge:
    """Health is open to everybody; the scope that a request is granted is in `scope["state"]["granted"]`."""

    def __init__(
        self,
        *,
        app: App,
        access: KeylessAccess,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app, self._access, self._metrics, self._clock = app, access, metrics, clock
        self._log = structlog.get_logger("kroshka.http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # there are none, and none may come in unchecked
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id")
        request_id = given if given and REQUEST_ID.fullmatch(given) else uuid4().hex
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._answer(scope, receive, send, request_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        inner = dict(scope, method="GET" if scope["method"] == "HEAD" else scope["method"])
        answer = _Answer(send=send, request_id=request_id, without_body=scope["method"] == "HEAD")
        began_at = self._clock()
        try:
            await self._check_and_run(inner, receive, answer)
        except Exception:  # noqa: BLE001 (the last boundary: after it there is only the server)
            self._log.error("request_failed", exc_info=True)  # the processors write its type and places, no message
            if answer.status is not None:
                raise AnswerBroken("the answer broke off") from None
            await _respond_with_problem(
                answer, inner["path"], 500, "internal", "Internal Server Error", "something went wrong here"
            )
        finally:
            self._book(scope, inner, answer.status or CLIENT_GONE, self._clock() - began_at)

    async def _check_and_run(self, inner: Scope, receive: Receive, answer: "_Answer") -> None:
        granted = self._access.scope_of(inner)
        if isinstance(granted, Refusal) and inner["path"] in OPEN_PATHS:
            granted = NOBODY
        if isinstance(granted, Refusal):
            if self._metrics is not None:
                self._metrics.request_refused(granted.reason)
            await _respond_with_problem(answer, inner["path"], 403, "forbidden", "Forbidden", granted.message)
            return
        inner["state"] = {**inner.get("state", {}), "granted": granted}
        await self._app(inner, receive, answer.send)

    def _book(self, scope: Scope, inner: Scope, status: int, seconds: float) -> None:
        """The template, never the path: a path holds ids."""
        route = inner.get("path_template") or UNMATCHED
        if self._metrics is not None:
            self._metrics.http_finished(route=route, method=scope["method"], status=status, seconds=seconds)
            if status == 413:
                self._metrics.request_limited("body")
        write = self._log.debug if route in QUIET_ROUTES and status in {200, 503} else self._log.info
        write("http_request", route=route, method=scope["method"], status=status, ms=round(seconds * 1000, 1))


class _Answer:
    """Passes an answer on with the headers that every answer has; remembers its status."""

    def __init__(self, *, send: Send, request_id: str, without_body: bool) -> None:
        self._send, self._request_id, self._without_body = send, request_id, without_body
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._headers(message.get("headers", []))}
        elif message["type"] == "http.response.body" and self._without_body:
            message = {**message, "body": b""}
        await self._send(message)

    def _headers(self, own: RawHeaders) -> RawHeaders:
        present = {name.lower() for name, _ in own}
        missing = [(name, value) for name, value in SECURITY_HEADERS if name not in present]
        return [*own, *missing, (b"x-request-id", self._request_id.encode("latin-1"))]


async def _respond_with_problem(answer: _Answer, path: str, status: int, code: str, title: str, detail: str) -> None:
    problem = {
        "type": f"urn:kroshka:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": path,
    }
    await respond(answer.send, status, msgspec.json.encode(problem), "application/problem+json")
