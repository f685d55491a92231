"""Accepting uploads: limits, kinds of files, and no blob without a reason."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from app.domain.documents import DEFAULT_WORKSPACE, ChunkingOptions, Scopes
from app.domain.errors import CollectionNotFound, InvalidInput, LimitExceeded, StoreUnavailable, TooManyChunks
from app.ingestion.media_types import sniff
from tests.support.aio import run
from tests.support.ingestion import open_rig
from tests.support.store import database_url, open_world


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


def test_an_upload_is_hashed_counted_and_stored_under_its_revisions_id(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            rig.knobs.set(chunk_size=500, chunk_overlap=0)
            accepted = await rig.upload("Привет", "Привет.md", scopes=Scopes(role_ids=("r",)), description="d")
            data = "Привет".encode()
            assert rig.blobs.blobs == {str(accepted.revision_id): data}
            revision = await world.revisions.revision(accepted.revision_id)
            assert revision is not None
            assert (revision.sha256, revision.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
            assert (revision.media_type, revision.blob_key) == ("text/markdown", str(accepted.revision_id))
            assert revision.chunking == ChunkingOptions(size=500, overlap=0, max_tokens=None)

    run(story())


def test_an_unchanged_upload_leaves_no_second_blob(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            first = await rig.upload("text")
            assert (await rig.upload("text")).outcome == "unchanged"
            assert set(rig.blobs.blobs) == {str(first.revision_id)}

    run(story())


def test_a_file_over_the_limit_is_refused_on_the_way(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            sent = 0

            async def endless() -> AsyncIterator[bytes]:
                nonlocal sent
                while True:
                    sent += 1_000
                    yield b"x" * 1_000

            with pytest.raises(LimitExceeded, match="11000 bytes, at most 10000"):
                await rig.uploads.accept(
                    endless(),
                    workspace_id=DEFAULT_WORKSPACE,
                    collection_id=world.collection.id,
                    source_name="A.md",
                )
            assert sent == 11_000
            assert rig.blobs.blobs == {}
            assert await world.count("document") == 0

    run(story())


def test_refusals_leave_no_blob(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            with pytest.raises(InvalidInput, match="empty"):
                await rig.upload("")
            with pytest.raises(InvalidInput, match="sourceName"):
                await rig.upload("text", "\n")
            await rig.upload("one\n\ntwo")
            await rig.work()
            rig.knobs.set(max_chunks_per_collection=2)
            with pytest.raises(TooManyChunks):
                await rig.upload("text", "B.md")
            assert len(rig.blobs.blobs) == 1

    run(story())


def test_an_unknown_collection_is_refused_before_a_byte_is_read(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:

            async def untouched() -> AsyncIterator[bytes]:
                raise AssertionError("the stream was read")
                yield b""

            with pytest.raises(CollectionNotFound):
                await rig.uploads.accept(
                    untouched(), workspace_id=DEFAULT_WORKSPACE, collection_id=uuid4(), source_name="A.md"
                )

    run(story())


def test_a_blob_stays_when_nobody_knows_whether_the_document_was_accepted(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:

            async def lost(*_: object, **__: object) -> None:
                raise StoreUnavailable("connection lost during COMMIT", cause="reset")

            world.catalog.accept = lost  # type: ignore[assignment, method-assign]
            with pytest.raises(StoreUnavailable):
                await rig.upload("text")
            assert len(rig.blobs.blobs) == 1

    run(story())


@pytest.mark.parametrize(
    ("head", "name", "declared", "expected"),
    [
        (b"# Title", "a.md", None, "text/markdown"),
        (b"# Title", "a.MARKDOWN", "application/octet-stream", "text/markdown"),
        (b"text", "a.txt", None, "text/plain"),
        (b"text", "README", "text/markdown; charset=utf-8", "text/markdown"),
        (b"text", "a.log", "application/json", "text/plain"),
        (b"\xff\xfeA\0", "a.txt", None, "text/plain"),
        (b"<p>", "dir/a.html", "text/plain", "text/html"),
        (b"%PDF-1.7", "a.md", "text/markdown", "application/pdf"),
        (b"PK\x03\x04", "a.zip", None, "application/zip"),
        (
            b"PK\x03\x04",
            "a.docx",
            "text/plain",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (b"ab\0cd", "a.md", "text/markdown", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n", "a.txt", None, "image/png"),
    ],
)
def test_the_kind_of_a_file_is_seen_from_its_bytes_and_name(
    head: bytes, name: str, declared: str | None, expected: str
) -> None:
    assert sniff(head, name, declared) == expected
