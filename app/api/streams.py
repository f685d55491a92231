"""Streams that fail before their answer has begun, not in the middle of it."""

from collections.abc import AsyncIterator


async def begun(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same stream with its first block read: what is missing or unreachable is an error with a status still."""
    first = await anext(stream, b"")
    return _resumed(first, stream)


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for block in rest:
        yield block
