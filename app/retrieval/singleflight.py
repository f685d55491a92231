"""Query vectors: concurrent identical queries share one call, recent ones are kept for a while."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from uuid import UUID

from app.domain.deadline import Deadline
from app.domain.ports import Embedder
from app.domain.vectors import QueryVectors

_Key = tuple[UUID, str, str]


class QueryVectorCache:
    """An LRU with a time to live, keyed by (workspace, model, text).

    The workspace is part of the key: a cache shared across tenants would tell by its speed what others asked. A call is
    not bound to the one who started it: when that caller goes away, the others still get their vector.
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        capacity: int = 512,
        ttl_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder, self._capacity, self._ttl_s, self._clock = embedder, capacity, ttl_s, clock
        self._vectors: OrderedDict[_Key, tuple[float, QueryVectors]] = OrderedDict()
        self._flights: dict[_Key, asyncio.Task[QueryVectors]] = {}

    async def vectors(self, workspace_id: UUID, text: str, deadline: Deadline) -> tuple[QueryVectors, str]:
        """The vectors, and how they were had: `hit`, `shared` or `miss`."""
        key = (workspace_id, self._embedder.model.key, text)
        if (kept := self._kept(key)) is not None:
            return kept, "hit"
        flight, how = self._flights.get(key), "shared"
        if flight is None:
            flight, how = self._start(key, deadline), "miss"
        async with asyncio.timeout(deadline.remaining_s()):
            return await asyncio.shield(flight), how

    def _kept(self, key: _Key) -> QueryVectors | None:
        entry = self._vectors.get(key)
        if entry is None or entry[0] < self._clock():
            return None
        self._vectors.move_to_end(key)
        return entry[1]

    def _start(self, key: _Key, deadline: Deadline) -> asyncio.Task[QueryVectors]:
        flight = asyncio.create_task(self._embedder.embed_query(key[2], deadline))
        self._flights[key] = flight
        flight.add_done_callback(lambda done: self._land(key, done))
        return flight

    def _land(self, key: _Key, flight: asyncio.Task[QueryVectors]) -> None:
        self._flights.pop(key, None)
        if flight.cancelled() or flight.exception() is not None:
            return
        self._vectors[key] = (self._clock() + self._ttl_s, flight.result())
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)
