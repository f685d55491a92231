"""Query vectors are computed once for many."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest

from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable
from app.domain.vectors import EmbeddingModel, PassageVectors, QueryVectors
from app.retrieval.singleflight import QueryVectorCache
from tests.support.aio import run

ONE, TWO = UUID(int=1), UUID(int=2)


class CountingEmbedder:
    """Counts calls; waits for `gate`; fails `failures` times first."""

    model = EmbeddingModel(name="m", version="1", dimension=2)

    def __init__(self, failures: int = 0) -> None:
        self.calls, self.failures, self.gate = 0, failures, asyncio.Event()

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        self.calls += 1
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise EmbedderUnavailable("gone", cause="refused")
        return QueryVectors(dense=np.array([1.0, 0.0], dtype=np.float32))

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        raise AssertionError("queries only")

    async def aclose(self) -> None: ...


def test_concurrent_identical_queries_share_one_call() -> None:
    async def scenario() -> None:
        embedder = CountingEmbedder()
        cache = QueryVectorCache(embedder=embedder)
        waiting = [asyncio.create_task(cache.vectors(ONE, "q", Deadline.after(5))) for _ in range(5)]
        await asyncio.sleep(0)
        embedder.gate.set()
        ways = [how for _, how in await asyncio.gather(*waiting)]
        assert embedder.calls == 1
        assert ways == ["miss", "shared", "shared", "shared", "shared"]
        assert (await cache.vectors(ONE, "q", Deadline.after(5)))[1] == "hit"

    run(scenario())


def test_a_caller_that_goes_away_does_not_take_the_vector_from_the_others() -> None:
    async def scenario() -> None:
        embedder = CountingEmbedder()
        cache = QueryVectorCache(embedder=embedder)
        first = asyncio.create_task(cache.vectors(ONE, "q", Deadline.after(5)))
        second = asyncio.create_task(cache.vectors(ONE, "q", Deadline.after(5)))
        await asyncio.sleep(0)
        first.cancel()
        embedder.gate.set()
        assert (await second)[1] == "shared"

    run(scenario())


def test_another_workspace_does_not_profit_from_the_cache() -> None:
    async def scenario() -> None:
        embedder = CountingEmbedder()
        embedder.gate.set()
        cache = QueryVectorCache(embedder=embedder)
        await cache.vectors(ONE, "q", Deadline.after(5))
        assert (await cache.vectors(TWO, "q", Deadline.after(5)))[1] == "miss"

    run(scenario())


def test_a_failure_is_not_kept() -> None:
    async def scenario() -> None:
        embedder = CountingEmbedder(failures=1)
        embedder.gate.set()
        cache = QueryVectorCache(embedder=embedder)
        with pytest.raises(EmbedderUnavailable):
            await cache.vectors(ONE, "q", Deadline.after(5))
        assert (await cache.vectors(ONE, "q", Deadline.after(5)))[1] == "miss"

    run(scenario())


def test_vectors_expire_and_the_least_recent_go_first() -> None:
    async def scenario() -> None:
        now = [0.0]
        embedder = CountingEmbedder()
        embedder.gate.set()
        cache = QueryVectorCache(embedder=embedder, capacity=2, ttl_s=10, clock=lambda: now[0])
        for text in ("a", "b", "a", "c"):
            await cache.vectors(ONE, text, Deadline.after(5))
        assert (await cache.vectors(ONE, "a", Deadline.after(5)))[1] == "hit"
        assert (await cache.vectors(ONE, "b", Deadline.after(5)))[1] == "miss"
        now[0] = 11.0
        assert (await cache.vectors(ONE, "a", Deadline.after(5)))[1] == "miss"

    run(scenario())


def test_the_deadline_ends_the_waiting() -> None:
    async def scenario() -> None:
        cache = QueryVectorCache(embedder=CountingEmbedder())
        with pytest.raises(TimeoutError):
            await cache.vectors(ONE, "q", Deadline.after(0.02))
        await asyncio.sleep(0)

    run(scenario())
