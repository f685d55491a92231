"""The process ends at every step in turn; the next one finishes the work, and every document is there once."""

from pathlib import Path

import pytest

from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.jobs import JobProgress
from tests.support.aio import run
from tests.support.ingestion import Crash, Rig, open_rig
from tests.support.store import database_url, open_world

TEXT = "\n\n".join(f"paragraph {n}" for n in range(7))
SHORTER = "\n\n".join(f"other {n}" for n in range(4))
MOST_STEPS = 60


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


async def crash_then_finish(rig: Rig, step: int, *, after: bool) -> bool:
    """Runs due jobs with a crash at call number `step`; False when the work was done before it."""
    rig.counter.crash_at(step, after=after)
    try:
        await rig.work()
    except Crash:
        crashed = True
    else:
        crashed = False
    rig.counter.crash_at(None)
    await rig.world.let_leases_expire()
    await rig.work()
    return crashed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_ingest_that_dies_at_any_step_is_finished_once(url: str, after: bool) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            for step in range(MOST_STEPS):
                accepted = await rig.upload(TEXT, f"{step}.md")
                crashed = await crash_then_finish(rig, step, after=after)
                assert await rig.is_indexed_once(accepted.document_id), f"step {step}"
                assert await rig.contents(accepted.document_id) == [f"paragraph {n}" for n in range(7)]
                if not crashed:
                    break
            else:
                raise AssertionError(f"an ingest has more than {MOST_STEPS} steps")
            assert step > 15
            counts = await world.queue.counts()
            assert set(counts) == {("ingest", "done")}
            assert await rig.all_points() == 7 * (step + 1)

    run(story(), timeout_s=60)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_replacement_that_dies_at_any_step_ends_with_the_new_revision_alone(url: str, after: bool) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            for step in range(MOST_STEPS):
                await rig.upload(TEXT, f"{step}.md")
                await rig.work()
                accepted = await rig.upload(SHORTER, f"{step}.md")
                crashed = await crash_then_finish(rig, step, after=after)
                assert await rig.is_indexed_once(accepted.document_id), f"step {step}"
                assert await rig.contents(accepted.document_id) == [f"other {n}" for n in range(4)]
                if not crashed:
                    break
            else:
                raise AssertionError(f"a replacement has more than {MOST_STEPS} steps")
            assert await world.count("chunk") == await rig.all_points() == 4 * (step + 1)

    run(story(), timeout_s=60)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_deletion_that_dies_at_any_step_leaves_nothing(url: str, after: bool) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            for step in range(MOST_STEPS):
                accepted = await rig.upload(TEXT, f"{step}.md")
                await rig.work()
                await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
                crashed = await crash_then_finish(rig, step, after=after)
                for table in ("document", "revision", "chunk"):
                    assert await world.count(table) == 0, f"step {step}: {table}"
                assert (await rig.all_points(), rig.blobs.blobs, rig.tokens.matrices) == (0, {}, {}), f"step {step}"
                if not crashed:
                    break
            else:
                raise AssertionError(f"a deletion has more than {MOST_STEPS} steps")

    run(story(), timeout_s=60)


def test_a_second_run_parses_and_embeds_only_what_is_missing(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(TEXT)
            lease = await world.claim()
            rig.counter.crash_at(14)
            with pytest.raises(Crash):
                await rig.ingestion.handle(lease)
            first_run = list(rig.counter.calls)
            assert sum(call.endswith(".upsert") for call in first_run) == 1
            rig.counter.crash_at(None)
            rig.embedder.embedded.clear()
            await world.let_leases_expire()
            await rig.work()
            assert "MemoryBlobs.read" not in rig.counter.calls
            assert rig.embedder.embedded == [f"paragraph {n}" for n in range(3, 7)]
            assert await rig.is_indexed_once(accepted.document_id)

    run(story())


def test_rows_that_are_not_complete_are_made_again(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(TEXT)
            lease = await world.claim()
            rig.counter.crash_at(14)
            with pytest.raises(Crash):
                await rig.ingestion.handle(lease)
            rig.counter.crash_at(None)
            await world.execute("DELETE FROM chunk WHERE chunk_index > 4")
            await world.let_leases_expire()
            await rig.work()
            assert await rig.is_indexed_once(accepted.document_id)
            assert len(await rig.contents(accepted.document_id)) == 7

    run(story())


def test_a_worker_that_lost_its_lease_cannot_flip(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, open_rig(world) as rig:
            accepted = await rig.upload(TEXT)
            sleeping = await world.claim("sleeping")
            await world.let_leases_expire()
            awake = await world.claim("awake")
            from app.domain.errors import LeaseLost

            with pytest.raises(LeaseLost):
                await rig.ingestion.handle(sleeping)
            assert (await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)).status != "indexed"
            await world.queue.heartbeat(awake, JobProgress(stage="embed"))
            await rig.ingestion.handle(awake)
            assert await rig.is_indexed_once(accepted.document_id)

    run(story())
