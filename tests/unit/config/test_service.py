"""The 30-second cache of the knobs, and writing rows."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from app.config.knobs import Surroundings
from app.config.service import PLATFORM, ConfigService
from app.domain.errors import InvalidInput, PreconditionFailed, StoreUnavailable, UnknownField
from tests.support.aio import run

WORKSPACE = UUID(int=1)
OTHER = UUID(int=2)


class MemoryRows:
    """Settings rows in memory. Reads wait for `gate` when there is one; `failing` makes them fail."""

    def __init__(self, rows: dict[str, dict[str, object]] | None = None) -> None:
        self.rows = {scope: (overrides, 1) for scope, overrides in (rows or {}).items()}
        self.reads: list[str] = []
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.failing = False

    async def read(self, scope: str) -> tuple[dict[str, object], int]:
        self.reads.append(scope)
        self.asked.set()
        found = self.rows.get(scope, ({}, 0))
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        if self.failing:
            raise StoreUnavailable("the database is away", cause="refused")
        return found

    async def write(self, scope: str, overrides: dict[str, object], *, expected_version: int | None) -> int:
        await asyncio.sleep(0)
        version = self.rows.get(scope, ({}, 0))[1]
        if expected_version is not None and expected_version != version:
            raise PreconditionFailed(str(expected_version), str(version))
        self.rows[scope] = (overrides, version + 1)
        return version + 1


class Bench:
    """A service over rows in memory, with a clock that stands still."""

    def __init__(self, rows: dict[str, dict[str, object]] | None = None, **environ: str) -> None:
        self.rows, self.now, self.loads = MemoryRows(rows), 1000.0, []
        self.service = ConfigService(
            rows=self.rows,
            environ=environ,
            surroundings=Surroundings(min_score=0.2),
            clock=lambda: self.now,
            observer=lambda layer, result: self.loads.append((layer, result)),
        )

    async def top_k(self, workspace_id: UUID | None = WORKSPACE) -> int:
        return (await self.service.resolve(workspace_id)).config.search_top_k


def test_a_value_is_read_once_in_thirty_seconds() -> None:
    async def scenario() -> None:
        bench = Bench({str(WORKSPACE): {"searchTopK": 9}})
        assert [await bench.top_k() for _ in range(5)] == [9] * 5
        bench.now += 29.9
        await bench.top_k()
        assert bench.rows.reads == [PLATFORM, str(WORKSPACE)]
        bench.now += 0.2
        await bench.top_k()
        assert bench.rows.reads == [PLATFORM, str(WORKSPACE)] * 2
        assert bench.loads[0] == ("workspace", "loaded")
        assert bench.loads[1] == ("workspace", "hit")

    run(scenario())


def test_many_requests_at_expiry_cause_one_read() -> None:
    async def scenario() -> None:
        bench = Bench({PLATFORM: {"searchTopK": 11}})
        assert await asyncio.gather(*(bench.top_k() for _ in range(20))) == [11] * 20
        assert bench.rows.reads == [PLATFORM, str(WORKSPACE)]

    run(scenario())


def test_a_caller_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    async def scenario() -> None:
        bench = Bench({PLATFORM: {"searchTopK": 11}})
        bench.rows.gate = asyncio.Event()
        impatient = asyncio.create_task(bench.top_k())
        patient = asyncio.create_task(bench.top_k())
        await asyncio.sleep(0)
        impatient.cancel()
        bench.rows.gate.set()
        assert await patient == 11
        assert impatient.cancelled() or impatient.cancelling()

    run(scenario())


def test_a_write_is_seen_at_once() -> None:
    async def scenario() -> None:
        bench = Bench()
        assert await bench.top_k() == 8
        await bench.service.replace(WORKSPACE, {"searchTopK": 12}, expected_version=0)
        assert await bench.top_k() == 12

    run(scenario())


def test_a_platform_write_clears_every_workspace() -> None:
    async def scenario() -> None:
        bench = Bench()
        assert [await bench.top_k(WORKSPACE), await bench.top_k(OTHER)] == [8, 8]
        await bench.service.replace(None, {"searchTopK": 15}, expected_version=None)
        assert [await bench.top_k(WORKSPACE), await bench.top_k(OTHER), await bench.top_k(None)] == [15] * 3

    run(scenario())


@pytest.mark.parametrize("written", [WORKSPACE, None])
def test_a_load_that_began_before_a_write_is_never_stored_after_it(written: UUID | None) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.rows.gate = asyncio.Event()
        early = asyncio.create_task(bench.top_k())
        await bench.rows.asked.wait()
        gate, bench.rows.gate = bench.rows.gate, None
        # Writing validates against the platform's row, which is free to read now.
        await bench.service.replace(written, {"searchTopK": 20}, expected_version=None)
        late = asyncio.create_task(bench.top_k())
        gate.set()
        await early
        assert await late == 20
        assert await bench.top_k() == 20

    run(scenario())


def test_the_last_known_value_serves_while_the_database_is_away() -> None:
    async def scenario() -> None:
        bench = Bench({str(WORKSPACE): {"searchTopK": 9}}, RAG_RERANK_TOPK="6")
        await bench.top_k()
        bench.rows.failing = True
        bench.now += 31
        stale = await bench.service.resolve(WORKSPACE)
        assert (stale.config.search_top_k, stale.stale) == (9, True)
        unknown = await bench.service.resolve(OTHER)
        assert (unknown.config.search_top_k, unknown.config.rerank_top_k, unknown.stale) == (8, 6, True)
        assert ("workspace", "stale") in bench.loads
        reads = len(bench.rows.reads)
        await bench.service.resolve(WORKSPACE)
        assert len(bench.rows.reads) == reads, "a dead database is not asked for every search"
        bench.rows.failing = False
        bench.now += 1.1
        recovered = await bench.service.resolve(WORKSPACE)
        assert (recovered.config.search_top_k, recovered.stale) == (9, False)

    run(scenario())


def test_a_bad_value_in_a_row_is_counted_once_and_not_at_every_load() -> None:
    async def scenario() -> None:
        bench = Bench({str(WORKSPACE): {"searchTopK": "many"}})
        for _ in range(3):
            assert await bench.top_k() == 8
            bench.now += 31
        assert bench.loads.count(("workspace", "invalid_knob")) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("overrides", "pointer", "limit"),
    [
        ({"searchTopK": 500}, "/searchTopK", "1..200"),
        ({"rerankEnabled": "yes"}, "/rerankEnabled", "true or false"),
        ({"searchTimeoutMs": 9_000}, "/searchTimeoutMs", "5000"),
        ({"limitsProfile": "huge"}, "/limitsProfile", "small|standard"),
        ({"maxChunksPerDocument": 30_000}, "/maxChunksPerDocument", "20000"),
        ({"chunkSize": 400, "chunkOverlap": 201}, "/chunkOverlap", 200),
        ({"queryMinLength": 20, "queryMaxLength": 10}, "/queryMinLength", 10),
        ({"denseWeight": 0, "lexicalWeight": 0}, "/lexicalWeight", None),
    ],
)
def test_a_bad_value_is_refused_with_its_bound_and_nothing_is_written(
    overrides: dict[str, Any], pointer: str, limit: object
) -> None:
    async def scenario() -> None:
        bench = Bench()
        with pytest.raises(InvalidInput) as caught:
            await bench.service.replace(WORKSPACE, overrides, expected_version=None)
        assert (caught.value.pointer, caught.value.limit) == (pointer, limit)
        assert bench.rows.rows == {}

    run(scenario())


def test_an_unknown_knob_is_refused_by_its_name() -> None:
    async def scenario() -> None:
        with pytest.raises(UnknownField, match="/chunk_size: unknown field; known: chunkStrategy"):
            await Bench().service.replace(WORKSPACE, {"chunk_size": 500}, expected_version=None)

    run(scenario())


def test_the_platform_may_raise_what_a_workspace_may_not() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.service.replace(None, {"searchTimeoutMs": 9_000}, expected_version=None)
        await bench.service.replace(WORKSPACE, {"searchTimeoutMs": 8_000}, expected_version=None)
        assert (await bench.service.resolve(WORKSPACE)).config.search_timeout_ms == 8_000

    run(scenario())


def test_a_change_merges_and_null_takes_an_override_out() -> None:
    async def scenario() -> None:
        bench = Bench({str(WORKSPACE): {"searchTopK": 9, "rrfK": 30}})
        row = await bench.service.change(WORKSPACE, {"searchTopK": None, "chunkSize": 700}, expected_version=1)
        assert (row.overrides, row.version) == ({"rrfK": 30, "chunkSize": 700}, 2)

    run(scenario())


def test_two_changes_of_one_row_cannot_overwrite_each_other() -> None:
    async def scenario() -> None:
        bench = Bench()
        outcomes = await asyncio.gather(
            bench.service.change(WORKSPACE, {"searchTopK": 9}, expected_version=None),
            bench.service.change(WORKSPACE, {"rrfK": 30}, expected_version=None),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, PreconditionFailed) for outcome in outcomes) == 1

    run(scenario())


def test_fresh_values_come_from_the_rows_and_not_from_the_cache() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.top_k()
        bench.rows.rows[str(WORKSPACE)] = ({"searchTopK": 30}, 4)  # another replica wrote
        fresh = await bench.service.fresh(WORKSPACE)
        assert (fresh.resolved.config.search_top_k, fresh.version) == (30, 4)
        assert await bench.top_k() == 8

    run(scenario())
