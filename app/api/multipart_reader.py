"""A multipart form read part by part while it arrives: nothing is kept that nobody asked for."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from litestar import Request
from litestar.exceptions import InternalServerException
from multipart import (  # type: ignore[import-untyped]  # it ships no types
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
    parse_options_header,
)

from app.api.errors import ClientGone, MalformedBody, UnsupportedBody
from app.domain.errors import InvalidInput, LimitExceeded

FORM = "multipart/form-data"
MAX_PARTS = 500
MAX_FIELD_BYTES = 256 * 1024


class Part(AsyncIterator[bytes]):
    """One part of a form. Iterating gives its body in blocks as they arrive; it can be read once."""

    def __init__(self, *, segment: MultipartSegment, events: AsyncIterator[Any]) -> None:
        self.name: str = segment.name or ""
        self.filename: str | None = segment.filename
        self.media_type: str | None = segment.content_type
        self._events, self._ended = events, False

    @property
    def is_file(self) -> bool:
        return self.filename is not None

    async def __anext__(self) -> bytes:
        # The events end early when reading the body failed; whoever read then got the error.
        event = None if self._ended else await anext(self._events, None)
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return bytes(event)

    async def text(self) -> str:
        """A field's value. Raises LimitExceeded, or InvalidInput when it is not UTF-8."""
        collected = bytearray()
        async for block in self:
            collected += block
            if len(collected) > MAX_FIELD_BYTES:
                raise LimitExceeded(f"/{self.name}", actual=len(collected), limit=MAX_FIELD_BYTES, unit="bytes")
        try:
            return collected.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"/{self.name}", "is not UTF-8") from error

    async def drain(self) -> None:
        """Reads over what is left, so that the next part can come."""
        async for _ in self:
            pass


class FormReader:
    """The parts of a request's form, in order.

    `max_bytes` bounds the whole body. Raises UnsupportedBody, MalformedBody, LimitExceeded or ClientGone.
    """

    def __init__(self, request: Request[Any, Any, Any], *, max_bytes: int) -> None:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != FORM:
            raise UnsupportedBody(expected=FORM)
        if not options.get("boundary"):
            raise MalformedBody("the Content-Type names no boundary")
        announced = request.content_length or 0
        if announced > max_bytes:  # before a file of it is stored
            raise LimitExceeded("", actual=announced, limit=max_bytes, unit="bytes")
        self._request, self._max_bytes = request, max_bytes
        self._parser = PushMultipartParser(options["boundary"], max_segment_count=MAX_PARTS)

    async def parts(self) -> AsyncGenerator[Part, None]:
        """What a part's reader leaves is read over before the next part is given."""
        async with aclosing(self._events()) as events:
            async for event in events:
                if isinstance(event, MultipartSegment):
                    part = Part(segment=event, events=events)
                    yield part
                    await part.drain()

    async def _events(self) -> AsyncGenerator[Any, None]:
        try:
            async with aclosing(self._body()) as body:
                async for block in body:
                    for event in self._parser.parse(block):
                        yield event
            self._parser.close()
        except MultipartError as error:
            raise MalformedBody(f"the body is not a multipart form: {error}") from error

    async def _body(self) -> AsyncGenerator[bytes, None]:
        received = 0
        try:
            async with aclosing(self._request.stream()) as stream:
                async for block in stream:
                    received += len(block)
                    if received > self._max_bytes:
                        raise LimitExceeded("", actual=received, limit=self._max_bytes, unit="bytes")
                    if block:
                        yield block
        except InternalServerException as error:
            raise ClientGone("the client closed the connection") from error
