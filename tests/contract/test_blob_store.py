"""What every blob store must do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from app.clients.blobs import ObjectBlobStore
from app.domain.errors import DocumentUnreadable, LimitExceeded, StoreUnavailable
from app.domain.ports import BlobStore
from tests.support.aio import run

Scenario = Callable[[BlobStore], Awaitable[None]]


@pytest.fixture(params=["folder", "memory"])
def on_blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Runs a scenario on an empty store (its folder's name holds a blank and does not exist yet)."""

    def go(scenario: Scenario) -> None:
        url = (tmp_path / "the blobs").as_uri() if request.param == "folder" else "memory:///"
        run(scenario(ObjectBlobStore(url=url)))

    return go


async def parts(*given: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for part in given:
        yield part
    if error is not None:
        raise error


async def collect(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([part async for part in stream])


def test_an_original_comes_back_byte_for_byte(on_blobs: Callable[[Scenario], None]) -> None:
    async def scenario(blobs: BlobStore) -> None:
        key = str(uuid4())
        assert await blobs.put(key, parts(b"one ", b"", b"two" * 900_000)) == 2_700_004
        assert await blobs.read(key) == b"one " + b"two" * 900_000
        assert await collect(blobs.stream(key)) == await blobs.read(key)

    on_blobs(scenario)


def test_an_aborted_stream_leaves_nothing_and_its_error_passes(on_blobs: Callable[[Scenario], None]) -> None:
    async def scenario(blobs: BlobStore) -> None:
        key = str(uuid4())
        error = LimitExceeded("/file", actual=2, limit=1, unit="bytes")
        with pytest.raises(LimitExceeded):
            await blobs.put(key, parts(b"x" * 12_000_000, error=error))
        with pytest.raises(DocumentUnreadable):
            await blobs.read(key)

    on_blobs(scenario)


def test_a_cancelled_upload_leaves_nothing(on_blobs: Callable[[Scenario], None]) -> None:
    async def scenario(blobs: BlobStore) -> None:
        key, begun = str(uuid4()), asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 1_000_000
                begun.set()
                await asyncio.sleep(0.01)

        task = asyncio.create_task(blobs.put(key, endless()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(DocumentUnreadable):
            await blobs.read(key)

    on_blobs(scenario)


def test_deleting_is_final_and_may_be_repeated(on_blobs: Callable[[Scenario], None]) -> None:
    async def scenario(blobs: BlobStore) -> None:
        key = str(uuid4())
        await blobs.put(key, parts(b"data"))
        await blobs.delete(key)
        await blobs.delete(key)
        with pytest.raises(DocumentUnreadable, match=key):
            await collect(blobs.stream(key))

    on_blobs(scenario)


def test_a_folder_that_cannot_be_written_is_an_outage_of_the_store(tmp_path: Path) -> None:
    blocker = tmp_path / "blobs"
    blobs = ObjectBlobStore(url=blocker.as_uri())
    blocker.rmdir()
    blocker.write_bytes(b"a file stands where the folder should be")
    with pytest.raises(StoreUnavailable, match="the blob store"):
        run(blobs.put(str(uuid4()), parts(b"data")))
