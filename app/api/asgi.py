"""ASGI's types and the few things done with raw messages. Knows no framework: the starting door uses it too."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]


def header_values(scope: Scope, name: bytes) -> list[str]:
    """All values of a header (lower-case name), in order."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def header(scope: Scope, name: bytes) -> str | None:
    """The first value of a header, or None."""
    return next(iter(header_values(scope, name)), None)


async def respond(
    send: Send, status: int, body: bytes, media_type: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """A whole answer in two messages."""
    raw: RawHeaders = [
        (b"content-type", media_type.encode("latin-1")),
        (b"content-length", str(len(body)).encode()),
        *((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers),
    ]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
