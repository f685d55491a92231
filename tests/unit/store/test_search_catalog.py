"""What a search sees."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import CollectionNotFound, ConfigurationError, WorkspaceNotFound
from app.domain.search import SearchScope
from tests.support.aio import run
from tests.support.store import World, database_url, open_world


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


EVERYWHERE = SearchScope(workspace_id=DEFAULT_WORKSPACE)


async def all_ids(world: World, document_id: UUID) -> list[UUID]:
    return await world.revisions.document_chunk_ids(document_id)


async def visible_texts(world: World, ids: list[UUID]) -> list[str]:
    snapshot = await world.search.snapshot(EVERYWHERE)
    visible = await world.search.visible(ids, snapshot)
    passages = await world.search.passages([one.chunk_id for one in visible])
    return sorted(passage.text[passage.content_start :] for passage in passages.values())


def test_a_snapshot_names_the_generation_and_whether_anything_is_there(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            before = await world.search.snapshot(EVERYWHERE)
            assert (before.has_documents, before.epoch) == (False, 0)
            assert (before.generation_id, before.model_key) == (world.generation.id, world.generation.model_key)
            await world.index(await world.claim())
            after = await world.search.snapshot(EVERYWHERE)
            assert (after.has_documents, after.epoch) == (True, 1)
            empty = await world.catalog.create_collection(DEFAULT_WORKSPACE, "Empty")
            scope = SearchScope(workspace_id=DEFAULT_WORKSPACE, collection_ids=(empty.id,))
            assert not (await world.search.snapshot(scope)).has_documents

    run(story())


def test_unknown_places_are_named(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            stranger = uuid4()
            with pytest.raises(WorkspaceNotFound):
                await world.search.snapshot(SearchScope(workspace_id=stranger))
            both = (world.collection.id, stranger, world.collection.id)
            with pytest.raises(CollectionNotFound, match=str(stranger)):
                await world.search.snapshot(SearchScope(workspace_id=DEFAULT_WORKSPACE, collection_ids=both))
            await world.catalog.ensure_workspace(stranger, "other")
            foreign = SearchScope(workspace_id=stranger, collection_ids=(world.collection.id,))
            with pytest.raises(CollectionNotFound):
                await world.search.snapshot(foreign)

    run(story())


def test_without_a_generation_a_search_says_what_to_do(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.execute("UPDATE generation SET state = 'retired'")
            with pytest.raises(ConfigurationError, match="generation"):
                await world.search.snapshot(EVERYWHERE)

    run(story())


def test_a_revision_that_is_not_current_is_invisible(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one", texts=("old 1", "old 2"))
            lease_holder = await world.accept("A.md", "two")
            lease = await world.claim()
            revision = await world.revisions.revision(lease_holder.revision_id)
            assert revision is not None
            from tests.support.store import chunks

            await world.revisions.replace_chunks(lease, revision, chunks("new"))
            ids = await all_ids(world, accepted.document_id)
            assert len(ids) == 3
            assert await visible_texts(world, ids) == ["old 1", "old 2"]

    run(story())


def test_a_search_that_began_before_a_flip_sees_the_old_revision_whole(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", "one", texts=("old 1", "old 2"))
            before = await world.search.snapshot(EVERYWHERE)
            await world.accept("A.md", "two")
            await world.index(await world.claim(), ("new",))
            ids = await all_ids(world, accepted.document_id)
            old = await world.search.visible(ids, before)
            assert sorted(one.chunk_index for one in old) == [0, 1]
            assert await visible_texts(world, ids) == ["new"]

    run(story())


def test_deleted_documents_and_collections_and_switched_off_chunks_are_invisible_at_once(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            first = await world.indexed("A.md", texts=("a", "off"))
            second = await world.indexed("B.md", texts=("b",))
            snapshot = await world.search.snapshot(EVERYWHERE)
            ids = await all_ids(world, first.document_id) + await all_ids(world, second.document_id)
            await world.execute("UPDATE chunk SET enabled = false WHERE content = 'off'")
            assert len(await world.search.visible(ids, snapshot)) == 2
            await world.catalog.delete_document(DEFAULT_WORKSPACE, first.document_id)
            assert [one.document_id for one in await world.search.visible(ids, snapshot)] == [second.document_id]
            await world.catalog.delete_collection(DEFAULT_WORKSPACE, world.collection.id)
            assert await world.search.visible(ids, snapshot) == []
            assert not (await world.search.snapshot(EVERYWHERE)).has_documents

    run(story())


def test_a_passage_tells_where_it_stands(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed("A.md", texts=("one", "two"))
            ids = await all_ids(world, accepted.document_id)
            passages = await world.search.passages([*ids, uuid4()])
            assert len(passages) == 2
            second = next(one for one in passages.values() if one.chunk_index == 1)
            assert (second.source_name, second.collection_id) == ("A.md", world.collection.id)
            assert (second.section_path, second.span, second.page) == (("Title", "S"), (10, 13), None)
            assert second.text[second.content_start :] == "two"
            assert await world.search.passages([]) == {}

    run(story())
