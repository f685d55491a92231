"""A document's way, its replacement, its end."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from app.domain.deadline import Deadline
from app.domain.documents import DEFAULT_WORKSPACE, RevisionState, StoredError
from app.domain.errors import (
    JobCancelled,
    ModelMismatch,
    NoTextFound,
    TooManyChunks,
    TransientError,
    VerificationFailed,
)
from app.domain.index import IndexFilter, IndexPoint
from app.domain.jobs import JobKind, JobState
from app.domain.search import SearchScope
from tests.support.aio import run
from tests.support.ingestion import Crash, Rig, open_rig
from tests.support.store import World, database_url, open_world

THREE = "one bird\n\ntwo birds\n\nthree birds"
SEVEN = "\n\n".join(f"paragraph {n}" for n in range(7))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


def test_a_document_is_parsed_chunked_embedded_verified_and_current(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(SEVEN)
            assert await rig.work() == [JobKind.INGEST]
            assert await rig.is_indexed_once(accepted.document_id)
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.status, document.chunk_count, document.pending) == ("indexed", 7, None)
            assert accepted.job_id is not None
            assert (await world.queue.job(DEFAULT_WORKSPACE, accepted.job_id)).state is JobState.DONE
            assert rig.embedder.embedded == [f"paragraph {n}" for n in range(7)]

    run(story())


def test_what_was_done_is_reported_in_numbers(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            await rig.upload(THREE)
            await rig.work()
            (report,) = rig.reports
            assert (report.result, report.chunks, report.media_type) == ("indexed", 3, "text/markdown")
            assert report.size_bytes == len(THREE)
            assert set(report.stage_s) == {"parse", "chunk", "embed", "index", "verify", "flip"}

    run(story())


def test_a_new_upload_replaces_the_old_one_and_the_purge_removes_what_was(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            first = await rig.upload(SEVEN)
            await rig.work()
            second = await rig.upload(THREE)
            assert (second.document_id, second.revision) == (first.document_id, 2)
            assert await rig.contents(first.document_id) == [f"paragraph {n}" for n in range(7)]
            assert await rig.work(jobs=1) == [JobKind.INGEST]
            assert await rig.contents(first.document_id) == ["one bird", "two birds", "three birds"]
            assert len(await rig.points(first.document_id)) == 10, "the old points stay for searches under way"
            assert await rig.work() == [JobKind.PURGE]
            assert await rig.is_indexed_once(first.document_id)
            assert await world.count("chunk") == 3
            assert set(rig.blobs.blobs) == {str(first.revision_id), str(second.revision_id)}, "history stays"

    run(story())


def test_searches_see_the_old_or_the_new_revision_and_never_both(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            first = await rig.upload(SEVEN)
            await rig.work()
            await rig.upload(THREE)
            lease = await world.claim()
            ingest = asyncio.ensure_future(rig.ingestion.handle(lease))
            seen = set()
            while not ingest.done():
                snapshot = await world.search.snapshot(SearchScope(workspace_id=DEFAULT_WORKSPACE))
                found = await world.search.visible(await rig.points(first.document_id), snapshot)
                seen.add(len(found))
            await ingest
            snapshot = await world.search.snapshot(SearchScope(workspace_id=DEFAULT_WORKSPACE))
            seen.add(len(await world.search.visible(await rig.points(first.document_id), snapshot)))
            assert seen == {7, 3}

    run(story())


def test_deleting_leaves_no_points_rows_token_vectors_or_blobs(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            kept = await rig.upload(THREE, "kept.md")
            doomed = await rig.upload(SEVEN, "doomed.md")
            await rig.work()
            await rig.upload(THREE, "doomed.md")
            await rig.work(jobs=1)
            await world.catalog.delete_document(DEFAULT_WORKSPACE, doomed.document_id)
            assert await rig.work() == [JobKind.DELETE, JobKind.DELETE], "the index is swept twice"
            assert await rig.points(doomed.document_id) == []
            assert await rig.all_points() == len(rig.tokens.matrices) == await world.count("chunk") == 3
            assert await world.count("document") == await world.count("revision") == 1
            assert set(rig.blobs.blobs) == {str(kept.revision_id)}
            assert await rig.is_indexed_once(kept.document_id)

    run(story())


def test_the_second_sweep_of_a_deletion_waits_for_late_writes(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(THREE)
            await rig.work()
            late = await _held_points(rig)
            job_id = await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            await rig.deletion.handle(await world.claim())
            assert await world.queue.claim("w") is None, "not before the write time-out"
            assert (await world.queue.job(DEFAULT_WORKSPACE, job_id)).state is JobState.QUEUED
            await rig.index.upsert(late, Deadline.after(5))  # a stopped worker's write lands
            await rig.work()
            assert await rig.all_points() == 0

    run(story())


async def _held_points(rig: Rig) -> list[IndexPoint]:
    return rig.index._matching(IndexFilter(workspace_id=DEFAULT_WORKSPACE))


def test_a_whole_collection_goes(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            for n in range(3):
                await rig.upload(THREE, f"{n}.md")
            await rig.work(jobs=2)
            await world.catalog.delete_collection(DEFAULT_WORKSPACE, world.collection.id)
            await rig.work()
            for table in ("document", "revision", "chunk", "collection"):
                assert await world.count(table) == 0
            assert (await rig.all_points(), rig.blobs.blobs, rig.tokens.matrices) == (0, {}, {})

    run(story())


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"max_chunks_per_document": 6}, "7 chunks, at most 6 are allowed per document"),
        ({"max_chunks_per_collection": 9}, "10 chunks, at most 9 are allowed per collection"),
    ],
)
def test_a_document_over_a_limit_fails_whole_with_both_numbers(url: str, knobs: dict[str, int], message: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            await rig.upload(THREE, "other.md")
            await rig.work()
            rig.embedder.embedded.clear()
            rig.knobs.set(**knobs)
            accepted = await rig.upload(SEVEN)
            lease = await world.claim()
            with pytest.raises(TooManyChunks, match=message) as caught:
                await rig.ingestion.handle(lease)
            assert rig.embedder.embedded == [], "nothing was embedded"
            await rig.ingestion.abandon(lease, StoredError(caught.value.code, str(caught.value)), JobState.DEAD)
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert document.status == "failed"
            assert document.error == StoredError("too_many_chunks", message)
            assert rig.reports[-1].result == "failed"

    run(story())


def test_a_file_without_text_says_so(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            await rig.upload(" \n\n ")
            with pytest.raises(NoTextFound):
                await rig.work()

    run(story())


def test_a_failed_replacement_leaves_the_old_revision_and_its_purge_removes_the_rest(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            first = await rig.upload(THREE)
            await rig.work()
            await rig.upload(SEVEN)
            lease = await world.claim()
            rig.counter.crash_at(14)
            with pytest.raises(Crash):
                await rig.ingestion.handle(lease)
            rig.counter.crash_at(None)
            assert await rig.all_points() > 3
            await rig.ingestion.abandon(lease, StoredError("broken", "it broke"), JobState.DEAD)
            assert await rig.work() == [JobKind.PURGE]
            assert await rig.is_indexed_once(first.document_id)
            assert await rig.contents(first.document_id) == ["one bird", "two birds", "three birds"]
            document = await world.catalog.document(DEFAULT_WORKSPACE, first.document_id)
            assert document.status == "indexed"
            assert document.pending is not None
            assert document.pending.error == StoredError("broken", "it broke")

    run(story())


def test_a_cancelled_ingest_stops_at_its_next_step(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(SEVEN)
            lease = await world.claim()
            await world.queue.cancel(DEFAULT_WORKSPACE, lease.id)
            with pytest.raises(JobCancelled):
                await rig.ingestion.handle(lease)
            await rig.ingestion.abandon(lease, StoredError("job_cancelled", "cancelled"), JobState.CANCELLED)
            assert (await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)).status == "cancelled"
            assert rig.reports[-1].result == "cancelled"
            await rig.work()
            assert await rig.all_points() == await world.count("chunk") == 0

    run(story())


def test_an_ingest_of_a_deleted_document_ends_by_itself(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(THREE)
            lease = await world.claim()
            await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            await rig.ingestion.handle(lease)
            assert (await world.queue.job(DEFAULT_WORKSPACE, lease.id)).state is JobState.CANCELLED
            assert await rig.work() == [JobKind.DELETE, JobKind.DELETE]

    run(story())


def test_an_overtaken_ingest_ends_without_embedding(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            first = await rig.upload(SEVEN)
            await world.queue.postpone(await world.claim(), delay=timedelta(hours=1))
            await rig.upload(THREE)
            newer = await world.claim()
            await rig.ingestion.handle(newer)
            rig.embedder.embedded.clear()
            await rig.work()
            assert rig.embedder.embedded == []
            assert first.job_id is not None
            assert (await world.queue.job(DEFAULT_WORKSPACE, first.job_id)).state is JobState.CANCELLED
            assert await rig.contents(first.document_id) == ["one bird", "two birds", "three birds"]

    run(story())


class Forgetful:
    """An index that loses some of what is written."""

    def __init__(self, index: Any, *, losses: int) -> None:
        self._index, self._losses = index, losses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def upsert(self, points: Sequence[IndexPoint], deadline: Deadline) -> None:
        await self._index.upsert(points[1:] if self._losses else points, deadline)
        self._losses = max(0, self._losses - 1)


def test_points_that_the_index_lost_are_written_again(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world, decorate_index=lambda i: Forgetful(i, losses=2)) as rig:
            accepted = await rig.upload(SEVEN)
            await rig.work()
            assert await rig.is_indexed_once(accepted.document_id)

    run(story())


def test_an_index_that_keeps_losing_points_fails_the_document_with_both_numbers(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world, decorate_index=lambda i: Forgetful(i, losses=99)) as rig:
            await rig.upload(SEVEN)
            with pytest.raises(VerificationFailed, match=r"holds 6 of the document's 7 chunks"):
                await rig.work()

    run(story())


class Haunted:
    """An index that shows a point nobody wrote, as the embedded engine does after some crashes."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def flush(self, deadline: Deadline) -> None:
        (one, *_) = self._index._matching(IndexFilter(workspace_id=DEFAULT_WORKSPACE))
        await self._index.upsert([structs.replace(one, chunk_id=UUID(int=13))], deadline)


def test_points_without_a_row_are_deleted_by_the_verification(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world, decorate_index=Haunted) as rig:
            accepted = await rig.upload(SEVEN)
            await rig.work()
            assert await rig.is_indexed_once(accepted.document_id)

    run(story())


def test_points_of_an_attempt_that_had_other_rows_do_not_stay(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(SEVEN)
            lease = await world.claim()
            rig.counter.crash_at(14)
            with pytest.raises(Crash):
                await rig.ingestion.handle(lease)
            rig.counter.crash_at(None)
            assert await rig.points(accepted.document_id)
            # Parsed again, by a version of the service that reads the file otherwise.
            rig.blobs.blobs[str(accepted.revision_id)] = THREE.encode()
            await world.execute("UPDATE revision SET state = 'queued'")
            await world.let_leases_expire()
            await rig.work()
            assert await rig.is_indexed_once(accepted.document_id)
            texts = sorted(point.payload.text for point in await _held_points(rig))
            assert texts == ["one bird", "three birds", "two birds"]

    run(story())


class Editing:
    """An index during whose first write somebody edits a chunk."""

    def __init__(self, index: Any, world: World) -> None:
        self._index, self._world, self._edited = index, world, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def upsert(self, points: Sequence[IndexPoint], deadline: Deadline) -> None:
        await self._index.upsert(points, deadline)
        if not self._edited:
            self._edited = True
            edit = "UPDATE chunk SET content = 'edited', version = version + 1 WHERE chunk_index = 1"
            await self._world.execute(edit)


def test_a_chunk_that_changed_during_its_upsert_is_written_again(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world, decorate_index=lambda i: Editing(i, world)) as rig:
            accepted = await rig.upload(SEVEN)
            await rig.work()
            texts = {point.payload.text for point in await _held_points(rig)}
            assert "edited" in texts
            assert "paragraph 1" not in texts
            assert len(await rig.points(accepted.document_id)) == 7

    run(story())


def test_an_index_of_another_model_is_not_written_to(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            await world.execute("UPDATE generation SET model_key = 'bge-m3@1/1024'")
            await rig.upload(THREE)
            with pytest.raises(ModelMismatch, match="bge-m3"):
                await rig.work()
            assert await rig.all_points() == 0

    run(story())


def test_without_a_generation_an_ingest_waits(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            await world.execute("UPDATE generation SET state = 'retired'")
            await rig.upload(THREE)
            with pytest.raises(TransientError, match="generation"):
                await rig.work()

    run(story())


def test_a_purge_of_a_revision_that_is_current_again_does_nothing(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(THREE)
            lease = await world.claim()
            broken = StoredError("broken", "it broke")
            await rig.ingestion.abandon(lease, broken, JobState.DEAD)
            # A retry of the dead job: its revision is on its way again before the purge ran.
            await world.execute("UPDATE revision SET state = 'queued', error = NULL")
            await world.execute("UPDATE job SET state = 'queued', failures = 0 WHERE kind = 'ingest'")
            assert sorted(await rig.work()) == [JobKind.INGEST, JobKind.PURGE]
            assert await rig.is_indexed_once(accepted.document_id)

    run(story())


def test_states_are_shown_while_a_document_is_on_its_way(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(SEVEN)
            seen: list[str] = []
            real = rig.world.revisions.set_state

            async def watched(*arguments: Any) -> None:
                await real(*arguments)
                seen.append((await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)).status)

            lease = await world.claim()
            await watched(lease, accepted.revision_id, RevisionState.PARSING)
            await watched(lease, accepted.revision_id, RevisionState.CHUNKED)
            assert seen == ["parsing", "embedding"]

    run(story())
