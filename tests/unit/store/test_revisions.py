"""Rows, verification, flip, failure and forgetting in the metadata database."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from app.domain.documents import DEFAULT_WORKSPACE, RevisionState, StoredError, chunk_id
from app.domain.errors import Conflict, JobCancelled, LeaseLost
from app.domain.jobs import JobKind, JobState, Lease
from tests.support.aio import run
from tests.support.store import World, chunks, database_url, open_world

NOW = timedelta()
BROKEN = StoredError("broken", "it broke")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


async def claimed(world: World, name: str = "A.md", sha: str = "a") -> Lease:
    await world.accept(name, sha)
    return await world.claim()


def test_a_flip_needs_a_verification_in_every_written_generation(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            revision = await world.revisions.revision(lease.revision_id or uuid4())
            assert revision is not None
            await world.revisions.replace_chunks(lease, revision, chunks("one"))
            assert await world.revisions.flip(lease, revision, purge_after=NOW) == "again"
            await world.revisions.record_verified(lease, revision.id, world.generation.id, 1)
            assert await world.revisions.flip(lease, revision, purge_after=NOW) == "flipped"
            assert (await world.queue.job(DEFAULT_WORKSPACE, lease.id)).state is JobState.DONE

    run(story())


def test_a_flip_replaces_the_old_revision_and_queues_its_purge(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one", texts=("old",))
            assert await world.index(await claimed(world, sha="two"), ("new",)) == "flipped"
            rows = await world.catalog.chunks(DEFAULT_WORKSPACE, accepted.document_id)
            assert [row.chunk.content for row in rows] == ["new"]
            purge = await world.claim()
            assert (purge.kind, purge.revision_id) == (JobKind.PURGE, accepted.revision_id)

    run(story())


def test_an_overtaken_revision_is_not_made_current(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world, sha="one")
            old = await world.revisions.revision(lease.revision_id or uuid4())
            assert old is not None
            await world.queue.postpone(lease, delay=timedelta(hours=1))
            newer = await world.accept("A.md", "two")
            assert await world.index(await world.claim(), ("new",)) == "flipped"
            assert await world.revisions.is_overtaken(old)
            await world.make_due()
            assert await world.index(await world.claim(), ("old",)) == "superseded"
            assert (await world.catalog.document(DEFAULT_WORKSPACE, newer.document_id)).revision == 2

    run(story())


def test_a_deleted_document_is_not_brought_back_by_a_flip(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            revision = await world.revisions.revision(lease.revision_id or uuid4())
            assert revision is not None
            await world.revisions.replace_chunks(lease, revision, chunks("one"))
            await world.revisions.record_verified(lease, revision.id, world.generation.id, 1)
            await world.catalog.delete_document(DEFAULT_WORKSPACE, lease.document_id)
            assert await world.revisions.flip(lease, revision, purge_after=NOW) == "deleted"
            assert await world.revisions.revision(revision.id) is None

    run(story())


def test_switched_off_passages_stay_off_in_the_next_revision(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one", texts=("harmful", "good"))
            await world.execute("UPDATE chunk SET enabled = false WHERE chunk_index = 0")
            await world.index(await claimed(world, sha="two"), ("new", "good", "harmful"))
            rows = await world.catalog.chunks(DEFAULT_WORKSPACE, accepted.document_id)
            assert [(row.chunk.content, row.enabled) for row in rows] == [
                ("new", True),
                ("good", True),
                ("harmful", False),
            ]

    run(story())


def test_nothing_is_written_after_the_lease_was_lost(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            old = await claimed(world)
            await world.let_leases_expire()
            await world.claim("w2")
            revision = await world.revisions.revision(old.revision_id or uuid4())
            assert revision is not None
            for write in (
                world.revisions.set_state(old, revision.id, RevisionState.PARSING),
                world.revisions.replace_chunks(old, revision, chunks("one")),
                world.revisions.record_verified(old, revision.id, world.generation.id, 1),
                world.revisions.flip(old, revision, purge_after=NOW),
                world.revisions.fail(old, revision.id, BROKEN, job_state=JobState.DEAD, purge_after=NOW),
                world.revisions.purgeable_chunk_ids(old, revision.id),
                world.revisions.forget_revision(old, revision.id),
                world.revisions.forget_document(old),
            ):
                with pytest.raises(LeaseLost):
                    await write
            assert await world.count("chunk") == 0
            assert (await world.revisions.revision(revision.id)) == revision
            assert await world.queue.counts() == {("ingest", "running"): 1}

    run(story())


def test_a_cancelled_job_stops_at_its_next_write(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            revision = await world.revisions.revision(lease.revision_id or uuid4())
            assert revision is not None
            await world.queue.cancel(DEFAULT_WORKSPACE, lease.id)
            for write in (
                world.revisions.set_state(lease, revision.id, RevisionState.PARSING),
                world.revisions.replace_chunks(lease, revision, chunks("one")),
                world.revisions.record_verified(lease, revision.id, world.generation.id, 1),
                world.revisions.flip(lease, revision, purge_after=NOW),
            ):
                with pytest.raises(JobCancelled):
                    await write

    run(story())


def test_chunks_are_replaced_whole_and_an_old_verification_goes_with_them(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            revision = await world.revisions.revision(lease.revision_id or uuid4())
            assert revision is not None
            await world.revisions.replace_chunks(lease, revision, chunks("one", "two", "three"))
            await world.revisions.record_verified(lease, revision.id, world.generation.id, 3)
            await world.revisions.replace_chunks(lease, revision, chunks("other"))
            rows = await world.revisions.chunk_rows(revision.id)
            assert [row.chunk.content for row in rows] == ["other"]
            assert rows[0].id == chunk_id(revision.document_id, 1, 0)
            assert await world.revisions.flip(lease, revision, purge_after=NOW) == "again"

    run(story())


def test_many_chunks_are_written_in_slices_and_chunked_comes_last(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            revision = await world.revisions.revision(lease.revision_id or uuid4())
            assert revision is not None
            await world.revisions.replace_chunks(lease, revision, chunks(*(str(n) for n in range(2_500))))
            stored = await world.revisions.revision(revision.id)
            assert stored is not None
            assert (stored.state, stored.chunk_count) == (RevisionState.CHUNKED, 2_500)
            rows = await world.revisions.chunk_rows(revision.id)
            assert [row.chunk.index for row in rows] == list(range(2_500))

    run(story())


def test_chunks_of_a_revision_that_is_current_are_never_replaced(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed()
            current = await world.revisions.revision(accepted.revision_id)
            assert current is not None
            assert current.is_current
            lease = await claimed(world, sha="two")
            with pytest.raises(Conflict, match="current"):
                await world.revisions.replace_chunks(lease, current, chunks("other"))
            assert await world.count("chunk") == 2

    run(story())


def test_a_failure_marks_the_revision_and_queues_its_purge(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            lease = await claimed(world)
            assert lease.revision_id is not None
            await world.revisions.fail(
                lease, lease.revision_id, BROKEN, job_state=JobState.DEAD, purge_after=timedelta(hours=1)
            )
            document = await world.catalog.document(DEFAULT_WORKSPACE, lease.document_id)
            assert (document.status, document.error) == ("failed", BROKEN)
            assert await world.queue.counts() == {("ingest", "dead"): 1, ("purge", "queued"): 1}
            assert await world.queue.claim("w1") is None, "the purge waits for the last write to land"

    run(story())


def test_a_current_revision_cannot_fail_any_more(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed()
            lease = await claimed(world, sha="two")
            await world.revisions.fail(lease, accepted.revision_id, BROKEN, job_state=JobState.DEAD, purge_after=NOW)
            assert (await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)).status == "indexed"

    run(story())


def test_only_what_is_over_can_be_purged(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            old = await world.indexed("A.md", "one", texts=("a", "b", "c"))
            await world.index(await claimed(world, sha="two"))
            purge = await world.claim()
            ids = await world.revisions.purgeable_chunk_ids(purge, old.revision_id)
            assert ids is not None
            assert len(ids) == 3
            current = (await world.catalog.chunks(DEFAULT_WORKSPACE, old.document_id))[0].revision_id
            assert await world.revisions.purgeable_chunk_ids(purge, current) is None
            assert await world.revisions.purgeable_chunk_ids(purge, uuid4()) is None

    run(story())


def test_a_document_keeps_its_last_ten_originals(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            uploads = []
            unused: list[str] = []
            for number in range(13):
                uploads.append(await world.accept("A.md", str(number)))
                await world.index(await world.claim(), (str(number),))
                if number:
                    purge = await world.claim()
                    assert purge.revision_id is not None
                    unused += await world.revisions.forget_revision(purge, purge.revision_id)
            assert unused == [str(accepted.revision_id) for accepted in uploads[:3]]
            assert await world.count("revision") == 10
            assert len(await world.revisions.document_blob_keys(uploads[0].document_id)) == 10
            assert (await world.catalog.document(DEFAULT_WORKSPACE, uploads[0].document_id)).revision == 13

    run(story())


def test_the_chunks_of_other_documents_are_counted(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            first = await world.indexed("A.md", texts=("1", "2"))
            await world.indexed("B.md", texts=("1", "2", "3"))
            count = world.revisions.collection_chunk_count
            assert await count(world.collection.id, without_document=first.document_id) == 3
            assert await count(world.collection.id, without_document=uuid4()) == 5

    run(story())
