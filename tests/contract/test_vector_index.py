"""What every vector index must do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.clients.embedded_index.index import EmbeddedVectorIndex
from app.domain.deadline import Deadline
from app.domain.errors import InvalidInput
from app.domain.index import IndexAnswer, IndexFilter, IndexPoint, IndexQuery
from app.domain.ports import VectorIndex
from app.domain.vectors import SparseVector
from tests.support.aio import run
from tests.support.vector_index import OTHER_WORKSPACE, WORKSPACE, MemoryVectorIndex, point, sparse, unit

Scenario = Callable[[VectorIndex], Awaitable[None]]
ALL = IndexFilter(workspace_id=WORKSPACE)


@pytest.fixture(params=["embedded", "memory"])
def on_index(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Runs a scenario on a fresh index of dimension 4 and closes it."""

    def go(scenario: Scenario) -> None:
        async def whole() -> None:
            index: VectorIndex = (
                EmbeddedVectorIndex(tmp_path / "index", dimension=4, linger_s=0.2)
                if request.param == "embedded"
                else MemoryVectorIndex(dimension=4)
            )
            await index.ensure_schema()
            try:
                await scenario(index)
            finally:
                await index.aclose()

        run(whole())

    return go


def soon() -> Deadline:
    return Deadline.after(20)


def search(dense: bool = True, lexical: SparseVector | None = None, limit: int = 10, **where: object) -> IndexQuery:
    scope = IndexFilter(**{"workspace_id": WORKSPACE} | where)  # type: ignore[arg-type]
    return IndexQuery(filter=scope, limit=limit, dense=unit(1, 0, 0, 0) if dense else None, lexical=lexical)


def dense_ids(answer: IndexAnswer) -> list[int]:
    return [hit.chunk_id.int for hit in answer.dense]


def lexical_ids(answer: IndexAnswer) -> list[int]:
    return [hit.chunk_id.int for hit in answer.lexical]


THREE = [
    point(1, unit(1, 0, 0, 0), sparse(10, 11)),
    point(2, unit(1, 1, 0, 0), sparse(11, 12)),
    point(3, unit(0, 1, 0, 0), sparse(12)),
]


def test_both_lists_come_from_one_search_best_first(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())
        answer = await index.search(search(lexical=sparse(10, 11)), soon())
        assert dense_ids(answer) == [1, 2, 3]
        assert lexical_ids(answer) == [1, 2]
        assert [hit.cosine for hit in answer.dense] == pytest.approx([1.0, 0.7071, 0.0], abs=1e-3)

    on_index(scenario)


def test_a_lexical_hit_knows_its_matched_terms_and_its_cosine(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())
        answer = await index.search(search(lexical=sparse(10, 11, 99)), soon())
        assert [hit.matched_terms for hit in answer.lexical] == [2, 1]
        assert [hit.cosine for hit in answer.lexical] == pytest.approx([1.0, 0.7071], abs=1e-3)

    on_index(scenario)


def test_a_list_that_was_not_asked_for_is_empty(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())
        assert (await index.search(search(), soon())).lexical == ()
        words = await index.search(search(dense=False, lexical=sparse(12)), soon())
        assert words.dense == ()
        assert lexical_ids(words) == [2, 3]
        assert words.lexical[0].cosine is None

    on_index(scenario)


def test_lexical_scores_use_the_statistics_of_the_workspace_alone(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())
        before = (await index.search(search(lexical=sparse(10)), soon())).lexical[0].score
        others = [point(n, unit(1, 0, 0, 0), sparse(10), workspace_id=OTHER_WORKSPACE) for n in range(50, 90)]
        await index.upsert(others, soon())
        after = (await index.search(search(lexical=sparse(10)), soon())).lexical[0].score
        assert after == pytest.approx(before) == pytest.approx(0.9808, abs=1e-3)

    on_index(scenario)


def test_another_workspace_sees_nothing(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())
        answer = await index.search(search(lexical=sparse(10), workspace_id=OTHER_WORKSPACE), soon())
        assert (answer.dense, answer.lexical) == ((), ())
        await index.delete_where(IndexFilter(workspace_id=OTHER_WORKSPACE), soon())
        assert len(await index.ids(ALL, soon())) == 3

    on_index(scenario)


def test_filters_restrict_every_list(on_index: Callable[[Scenario], None]) -> None:
    one, two = uuid4(), uuid4()

    async def scenario(index: VectorIndex) -> None:
        await index.upsert(
            [
                point(1, unit(1, 0, 0, 0), sparse(10), collection_id=one, document_id=one),
                point(2, unit(1, 0, 0, 0), sparse(10), collection_id=two, document_id=two, revision_id=two),
            ],
            soon(),
        )
        answer = await index.search(search(lexical=sparse(10), collection_ids=(two,)), soon())
        assert (dense_ids(answer), lexical_ids(answer)) == ([2], [2])
        assert await index.ids(IndexFilter(workspace_id=WORKSPACE, document_ids=(one,)), soon()) == [UUID(int=1)]
        assert await index.ids(IndexFilter(workspace_id=WORKSPACE, revision_ids=(two,)), soon()) == [UUID(int=2)]
        await index.delete_where(IndexFilter(workspace_id=WORKSPACE, document_ids=(two,)), soon())
        assert await index.ids(ALL, soon()) == [UUID(int=1)]

    on_index(scenario)


def test_writing_twice_is_writing_once(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        for _ in range(2):
            await index.upsert(THREE, soon())
        assert (await index.status(soon())).points == 3
        await index.delete([UUID(int=1), UUID(int=77)], soon())
        assert await index.ids(ALL, soon()) == [UUID(int=2), UUID(int=3)]

    on_index(scenario)


def bad_points() -> list[tuple[str, IndexPoint]]:
    good = unit(1, 0, 0, 0)
    nan = np.array([np.nan, 0, 0, 0], dtype=np.float32)
    return [
        ("dimension", point(9, unit(1, 0, 0), sparse(1))),
        ("nan", point(9, nan, sparse(1))),
        ("duplicate terms", point(9, good, SparseVector((1, 1), (1.0, 1.0)))),
        ("descending terms", point(9, good, SparseVector((2, 1), (1.0, 1.0)))),
        ("id twice", point(1, good, sparse(1))),
    ]


@pytest.mark.parametrize("bad", [b for _, b in bad_points()], ids=[name for name, _ in bad_points()])
def test_a_batch_with_one_bad_point_writes_nothing(on_index: Callable[[Scenario], None], bad: IndexPoint) -> None:
    async def scenario(index: VectorIndex) -> None:
        with pytest.raises(InvalidInput, match="/points"):
            await index.upsert([point(1, unit(1, 0, 0, 0), sparse(1)), bad], soon())
        assert await index.ids(ALL, soon()) == []

    on_index(scenario)


def test_equal_scores_always_come_in_the_same_order(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert([point(n, unit(1, 0, 0, 0), sparse(10)) for n in range(1, 13)], soon())
        answers = [await index.search(search(lexical=sparse(10), limit=10), soon()) for _ in range(10)]
        assert all(dense_ids(a) == lexical_ids(a) == list(range(1, 11)) for a in answers)

    on_index(scenario)


def test_a_point_without_words_is_found_by_its_vector(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert([point(1, unit(1, 0, 0, 0), SparseVector((), ()))], soon())
        answer = await index.search(search(lexical=sparse(10)), soon())
        assert (dense_ids(answer), lexical_ids(answer)) == ([1], [])

    on_index(scenario)


def test_many_searches_and_writes_at_once_do_not_mix_their_answers(on_index: Callable[[Scenario], None]) -> None:
    async def scenario(index: VectorIndex) -> None:
        await index.upsert(THREE, soon())

        async def look(term: int) -> list[int]:
            return lexical_ids(await index.search(search(lexical=sparse(term)), soon()))

        batch = [point(n, unit(0, 0, 1, 0), sparse(500)) for n in range(100, 400)]
        results = await asyncio.gather(index.upsert(batch, soon()), *(look(10 + n % 3) for n in range(60)))
        assert results[1:] == [[1], [1, 2], [2, 3]] * 20

    on_index(scenario)
