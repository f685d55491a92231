"""The Catalog port, on every database."""

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from app.domain.documents import DEFAULT_WORKSPACE, ChunkingOptions, Scopes, StoredError
from app.domain.errors import (
    CollectionNotFound,
    DocumentNotFound,
    InvalidInput,
    LimitExceeded,
    NameTaken,
    TooManyChunks,
    WorkspaceNotFound,
)
from app.domain.jobs import JobKind, JobState
from tests.support.aio import run
from tests.support.store import DATABASES, World, database_url, open_world


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_url(request.param, tmp_path)


async def names(world: World, **conditions: object) -> list[str]:
    page = await world.catalog.documents(DEFAULT_WORKSPACE, limit=200, **conditions)  # type: ignore[arg-type]
    return sorted(document.source_name for document in page.items)


def test_a_collection_name_is_taken_without_regard_to_case_or_unicode_form(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            created = await world.catalog.create_collection(DEFAULT_WORKSPACE, "  Кафе\u0301 ", "о кофе")
            assert (created.name, created.description) == ("Кафе\u0301", "о кофе")
            with pytest.raises(NameTaken):
                await world.catalog.create_collection(DEFAULT_WORKSPACE, "КАФЕ\u0301")
            found = await world.catalog.find_collection(DEFAULT_WORKSPACE, "кафЕ\u0301")
            assert found == created
            other = uuid4()
            await world.catalog.ensure_workspace(other, "other")
            await world.catalog.create_collection(other, "Кафе\u0301")

    run(story())


def test_of_two_collections_created_at_once_with_one_name_one_is_refused(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            make = (world.catalog.create_collection(DEFAULT_WORKSPACE, name) for name in ("Wiki", "WIKI", "wiki"))
            results = await asyncio.gather(*make, return_exceptions=True)
            assert sum(isinstance(result, NameTaken) for result in results) == 2

    run(story())


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "a\0b"])
def test_a_collection_name_that_nobody_could_type_is_refused(tmp_path: Path, name: str) -> None:
    async def story() -> None:
        async with open_world(database_url("sqlite", tmp_path)) as world:
            with pytest.raises(InvalidInput, match="name"):
                await world.catalog.create_collection(DEFAULT_WORKSPACE, name)

    run(story())


def test_a_name_that_is_too_long_is_refused_with_both_numbers(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_world(database_url("sqlite", tmp_path)) as world:
            with pytest.raises(LimitExceeded, match="201 characters, at most 200"):
                await world.catalog.create_collection(DEFAULT_WORKSPACE, "x" * 201)
            with pytest.raises(LimitExceeded, match="sourceName"):
                await world.accept("x" * 1_001)

    run(story())


def test_collections_need_a_workspace(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            with pytest.raises(WorkspaceNotFound):
                await world.catalog.create_collection(uuid4(), "Wiki")
            with pytest.raises(CollectionNotFound):
                await world.catalog.collection(uuid4(), world.collection.id)

    run(story())


def test_collections_count_what_is_indexed(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed("A.md", texts=("one", "two", "three"))
            await world.accept("B.md")
            found = await world.catalog.collection(DEFAULT_WORKSPACE, world.collection.id)
            assert (found.documents, found.chunks, found.bytes) == (2, 3, 100)

    run(story())


def test_collections_are_listed_by_name_in_pages(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for name in ("b", "A", "Ю", "c"):
                await world.catalog.create_collection(DEFAULT_WORKSPACE, name)
            seen: list[str] = []
            cursor = None
            while True:
                page = await world.catalog.collections(DEFAULT_WORKSPACE, limit=2, cursor=cursor)
                seen += [collection.name for collection in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert sorted(seen) == sorted(["A", "b", "c", "Docs", "Ю"])
            assert seen[:4] == ["A", "b", "c", "Docs"]

    run(story())


@pytest.mark.parametrize("cursor", ["nonsense", "W10", "é", "WzEsMl0"])
def test_a_cursor_from_elsewhere_is_refused(tmp_path: Path, cursor: str) -> None:
    async def story() -> None:
        async with open_world(database_url("sqlite", tmp_path)) as world:
            with pytest.raises(InvalidInput, match="cursor"):
                await world.catalog.documents(DEFAULT_WORKSPACE, limit=1, cursor=cursor)
            with pytest.raises(InvalidInput, match="cursor"):
                await world.catalog.collections(DEFAULT_WORKSPACE, limit=1, cursor=cursor)

    run(story())


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_limits_outside_the_bounds_are_refused(tmp_path: Path, limit: int) -> None:
    async def story() -> None:
        async with open_world(database_url("sqlite", tmp_path)) as world:
            with pytest.raises(InvalidInput, match="limit"):
                await world.catalog.documents(DEFAULT_WORKSPACE, limit=limit)

    run(story())


def test_an_upload_makes_document_revision_and_job(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            scopes = Scopes(agent_ids=("a1",))
            accepted = await world.accept(
                " Регламент.md", "s1", description="d", attributes={"year": 2024, "tags": ["x"]}, scopes=scopes
            )
            assert (accepted.outcome, accepted.revision) == ("queued", 1)
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.source_name, document.status, document.revision) == ("Регламент.md", "queued", 1)
            assert (document.sha256, document.size_bytes, document.media_type) == ("s1", 100, "text/markdown")
            assert (document.description, document.attributes) == ("d", {"year": 2024, "tags": ["x"]})
            assert (document.scopes, document.pending, document.error) == (scopes, None, None)
            assert await world.catalog.chunks(DEFAULT_WORKSPACE, accepted.document_id) == []

    run(story())


def test_the_same_bytes_and_chunking_again_change_nothing(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            first = await world.accept()
            waiting = await world.accept()
            assert (waiting.outcome, waiting.revision_id, waiting.job_id) == (
                "unchanged",
                first.revision_id,
                first.job_id,
            )
            await world.index(await world.claim())
            again = await world.accept()
            assert (again.outcome, again.document_id, again.job_id) == ("unchanged", first.document_id, None)
            assert await world.count("revision") == 1

    run(story())


@pytest.mark.parametrize(
    "change", [{"sha": "b"}, {"chunking": ChunkingOptions(size=500)}, {"media_type": "text/plain"}], ids=str
)
def test_other_bytes_chunking_or_kind_make_a_new_revision(tmp_path: Path, change: dict[str, object]) -> None:
    async def story() -> None:
        async with open_world(database_url("sqlite", tmp_path)) as world:
            first = await world.accept()
            second = await world.accept(**change)  # type: ignore[arg-type]
            assert (second.outcome, second.document_id, second.revision) == ("queued", first.document_id, 2)

    run(story())


def test_the_newest_good_revision_is_what_an_upload_is_compared_with(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed("A.md", "one")
            await world.accept("A.md", "two")
            assert (await world.accept("A.md", "one")).revision == 3

    run(story())


def test_bytes_that_failed_may_be_tried_again(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            assert accepted.job_id is not None
            await world.queue.cancel(DEFAULT_WORKSPACE, accepted.job_id)
            again = await world.accept()
            assert (again.outcome, again.revision) == ("queued", 2)

    run(story())


def test_metadata_that_comes_with_unchanged_bytes_is_taken_over_and_missing_metadata_stays(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            scopes = Scopes(agent_ids=("a1",))
            accepted = await world.accept(scopes=scopes, description="old")
            assert (await world.accept(description="new")).outcome == "unchanged"
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.description, document.scopes) == ("new", scopes)

    run(story())


def test_two_uploads_of_one_new_name_at_once_give_one_document_with_two_revisions(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            results = await asyncio.gather(*(world.accept("A.md", sha) for sha in ("one", "two", "three")))
            assert len({accepted.document_id for accepted in results}) == 1
            assert sorted(accepted.revision for accepted in results) == [1, 2, 3]
            assert await world.count("document") == 1

    run(story())


def test_an_upload_into_a_missing_or_deleted_collection_is_refused(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            with pytest.raises(CollectionNotFound):
                await world.accept(collection_id=uuid4())
            await world.catalog.delete_collection(DEFAULT_WORKSPACE, world.collection.id)
            with pytest.raises(CollectionNotFound):
                await world.accept()
            assert await world.count("document") == await world.count("job") == 0

    run(story())


def test_a_full_collection_takes_no_new_document_but_a_replacement(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed("A.md", texts=("one", "two", "three"))
            with pytest.raises(TooManyChunks, match="4 chunks, at most 3"):
                await world.catalog.accept(world.upload("B.md", "other"), max_collection_chunks=3)
            replaced = await world.catalog.accept(world.upload("A.md", "other"), max_collection_chunks=3)
            assert replaced.outcome == "queued"
            assert await world.count("document") == 1

    run(story())


def test_the_status_follows_the_revisions(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one")
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.status, document.chunk_count) == ("indexed", 2)
            await world.accept("A.md", "two")
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.status, document.revision, document.sha256) == ("indexed", 1, "one")
            assert document.pending is not None
            assert (document.pending.revision, document.pending.status) == (2, "queued")
            lease = await world.claim()
            assert lease.revision_id is not None
            error = StoredError("document_unreadable", "the file is broken")
            await world.revisions.fail(
                lease, lease.revision_id, error, job_state=JobState.DEAD, purge_after=timedelta()
            )
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (document.status, document.error) == ("indexed", None)
            assert document.pending is not None
            assert (document.pending.status, document.pending.error) == ("failed", error)

    run(story())


def test_the_original_is_that_of_the_current_revision_else_the_newest(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            first = await world.accept("A.md", "one")
            assert (await world.catalog.original(DEFAULT_WORKSPACE, first.document_id)).sha256 == "one"
            await world.index(await world.claim())
            await world.accept("A.md", "two")
            original = await world.catalog.original(DEFAULT_WORKSPACE, first.document_id)
            assert (original.sha256, original.blob_key, original.is_current) == ("one", str(first.revision_id), True)
            await world.catalog.delete_document(DEFAULT_WORKSPACE, first.document_id)
            with pytest.raises(DocumentNotFound):
                await world.catalog.original(DEFAULT_WORKSPACE, first.document_id)

    run(story())


def test_documents_are_found_by_a_part_of_their_name_in_any_script_and_case(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for name in ("Регламент ЖКХ.md", "Straße.md", "100%_done.md", "100 done.md", "日本語.md", "a\\b.md"):
                await world.accept(name)
            assert await names(world, name_contains="жкх") == ["Регламент ЖКХ.md"]
            assert await names(world, name_contains="STRASSE") == ["Straße.md"]
            assert await names(world, name_contains="0%_") == ["100%_done.md"]
            assert await names(world, name_contains="%") == ["100%_done.md"]
            assert await names(world, name_contains="_") == ["100%_done.md"]
            assert await names(world, name_contains="\\") == ["a\\b.md"]
            assert await names(world, name_contains="本") == ["日本語.md"]
            assert await names(world, name_contains="nothing") == []

    run(story())


def test_documents_are_filtered_by_collection_and_status(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            other = await world.catalog.create_collection(DEFAULT_WORKSPACE, "Other")
            await world.indexed("A.md")
            await world.accept("B.md")
            await world.accept("C.md", collection_id=other.id)
            assert await names(world, collection_id=world.collection.id) == ["A.md", "B.md"]
            assert await names(world, status="indexed") == ["A.md"]
            assert await names(world, status="queued") == ["B.md", "C.md"]
            assert await names(world, status="queued", collection_id=other.id) == ["C.md"]
            with pytest.raises(CollectionNotFound):
                await names(world, collection_id=uuid4())

    run(story())


def test_pages_of_documents_hold_each_once_newest_first(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for n in range(7):
                await world.accept(f"{n}.md")
            seen, cursor = [], None
            while True:
                page = await world.catalog.documents(DEFAULT_WORKSPACE, limit=3, cursor=cursor)
                seen += list(page.items)
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert sorted(document.source_name for document in seen) == [f"{n}.md" for n in range(7)]
            assert [d.created_at for d in seen] == sorted((d.created_at for d in seen), reverse=True)

    run(story())


def test_chunks_come_back_as_they_were_made(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed(texts=("первый", "second"))
            rows = await world.catalog.chunks(DEFAULT_WORKSPACE, accepted.document_id)
            assert [row.chunk.content for row in rows] == ["первый", "second"]
            chunk = rows[1].chunk
            assert (chunk.text, chunk.section_path, chunk.section_depths) == (
                "[Section: S]\n\nsecond",
                ("Title", "S"),
                (1, 3),
            )
            assert (chunk.spans, chunk.heading_spans, chunk.page) == (((10, 16),), (), None)
            assert rows[0].enabled
            assert rows[0].content_hash != rows[1].content_hash

    run(story())


def test_deleting_a_document_hides_it_cancels_its_jobs_and_queues_the_removal(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one")
            replacement = await world.accept("A.md", "two")
            assert replacement.job_id is not None
            job_id = await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            assert (await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)).status == "deleting"
            assert await names(world, status="deleting") == ["A.md"]
            cancelled = await world.queue.job(DEFAULT_WORKSPACE, replacement.job_id)
            assert cancelled.state is JobState.CANCELLED
            job = await world.queue.job(DEFAULT_WORKSPACE, job_id)
            assert (job.kind, job.state) == (JobKind.DELETE, JobState.QUEUED)
            assert await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id) == job_id
            with pytest.raises(DocumentNotFound):
                await world.catalog.delete_document(uuid4(), accepted.document_id)

    run(story())


def test_a_running_ingest_is_asked_to_stop_when_its_document_is_deleted(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            lease = await world.claim()
            await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            assert await world.queue.heartbeat(lease) is True
            assert await world.queue.claim("w2") is None, "the document's slot is still held"

    run(story())


def test_a_deleted_name_can_be_uploaded_again_at_once(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            old = await world.indexed()
            await world.catalog.delete_document(DEFAULT_WORKSPACE, old.document_id)
            new = await world.accept()
            assert (new.outcome, new.revision) == ("queued", 1)
            assert new.document_id != old.document_id

    run(story())


def test_deleting_a_collection_queues_the_removal_of_each_document(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed("A.md")
            await world.accept("B.md")
            doomed = world.collection.id
            await world.catalog.delete_collection(DEFAULT_WORKSPACE, doomed)
            with pytest.raises(CollectionNotFound):
                await world.catalog.collection(DEFAULT_WORKSPACE, doomed)
            with pytest.raises(CollectionNotFound):
                await world.catalog.delete_collection(DEFAULT_WORKSPACE, doomed)
            counts = await world.queue.counts()
            assert (counts["delete", "queued"], counts["ingest", "cancelled"]) == (2, 1)
            await world.catalog.create_collection(DEFAULT_WORKSPACE, "Docs")
            for _ in range(2):
                await world.revisions.forget_document(await world.claim())
            assert await world.count("document") == await world.count("revision") == await world.count("chunk") == 0
            assert await world.count("collection") == 1, "the deleted collection's row went with its last document"

    run(story())


def test_an_empty_collection_is_gone_at_once(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.catalog.delete_collection(DEFAULT_WORKSPACE, world.collection.id)
            assert await world.count("collection") == 0

    run(story())
