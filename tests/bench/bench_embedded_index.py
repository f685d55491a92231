"""The embedded index beside qdrant-client's local mode: `python -m tests.bench.bench_embedded_index [points]`.

Prints writes per second, search times at rest and beside a writer, the restart, and ratios of one run.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
from msgspec import structs
from qdrant_client import QdrantClient, models

from app.clients.embedded_index.index import EmbeddedVectorIndex
from app.domain.deadline import Deadline
from app.domain.index import IndexFilter, IndexPoint, IndexQuery
from app.domain.vectors import FloatArray, SparseVector
from tests.support.vector_index import WORKSPACE, point

DIMENSION, TERMS, VOCABULARY = 384, 80, 30_000
BATCH, SEARCHES, LOCAL_SEARCHES = 32, 200, 10


def made(count: int) -> list[IndexPoint]:
    """Random unit vectors and Zipf-like terms, the same in every run."""
    rng = np.random.default_rng(7)
    dense = rng.standard_normal((count, DIMENSION)).astype(np.float32)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    return [point(n + 1, dense[n], words(rng)) for n in range(count)]


def words(rng: np.random.Generator, size: int = TERMS) -> SparseVector:
    terms = np.unique(np.minimum(rng.zipf(1.3, size), VOCABULARY))
    return SparseVector(tuple(int(term) for term in terms), (1.0,) * len(terms))


def queries(count: int) -> list[tuple[FloatArray, SparseVector]]:
    rng = np.random.default_rng(8)
    dense = rng.standard_normal((count, DIMENSION)).astype(np.float32)
    return [(row / np.linalg.norm(row), words(rng, 6)) for row in dense]


def later() -> Deadline:
    return Deadline.after(120)


async def write(index: EmbeddedVectorIndex, points: Sequence[IndexPoint]) -> float:
    began = time.perf_counter()
    for start in range(0, len(points), BATCH):
        await index.upsert(points[start : start + BATCH], later())
    await index.flush(later())
    return len(points) / (time.perf_counter() - began)


async def search_times_ms(index: EmbeddedVectorIndex) -> list[float]:
    times = []
    for dense, lexical in queries(SEARCHES):
        query = IndexQuery(filter=IndexFilter(workspace_id=WORKSPACE), limit=40, dense=dense, lexical=lexical)
        began = time.perf_counter()
        await index.search(query, later())
        times.append((time.perf_counter() - began) * 1000)
    return times


def local_mode_ms(points: Sequence[IndexPoint]) -> float:
    """Median of the same two lists from qdrant-client's pure Python engine."""
    client = QdrantClient(":memory:")
    client.create_collection(
        "c",
        vectors_config={"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)},
        sparse_vectors_config={"lexical": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    for start in range(0, len(points), 1_000):
        client.upsert("c", [local_point(one) for one in points[start : start + 1_000]])
    times = []
    for dense, lexical in queries(LOCAL_SEARCHES):
        began = time.perf_counter()
        client.query_points("c", query=dense.tolist(), using="dense", limit=40)
        sparse = models.SparseVector(indices=list(lexical.indices), values=list(lexical.values))
        client.query_points("c", query=sparse, using="lexical", limit=40)
        times.append((time.perf_counter() - began) * 1000)
    client.close()
    return statistics.median(times)


def local_point(one: IndexPoint) -> models.PointStruct:
    sparse = models.SparseVector(indices=list(one.lexical.indices), values=list(one.lexical.values))
    return models.PointStruct(id=str(one.chunk_id), vector={"dense": one.dense.tolist(), "lexical": sparse})


def shown(times: list[float]) -> str:
    p95 = statistics.quantiles(times, n=20)[-1]
    return f"p50 {statistics.median(times):6.1f} ms  p95 {p95:6.1f} ms"


async def main(count: int) -> None:
    points = made(count)
    more = [structs.replace(p, chunk_id=UUID(int=count + n)) for n, p in enumerate(points[:2_000], 1)]
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedVectorIndex(Path(folder), dimension=DIMENSION, linger_s=0.1)
        await index.ensure_schema()
        print(f"{count} points written:  {await write(index, points):7.0f} points/s (batches of {BATCH}, flushed)")
        at_rest = await search_times_ms(index)
        print(f"search at rest:      {shown(at_rest)}")
        writing = asyncio.create_task(write(index, more))
        print(f"search while writing:{shown(await search_times_ms(index))}")
        await writing
        await index.aclose()
        await asyncio.sleep(1.0)
        began = time.perf_counter()
        index = EmbeddedVectorIndex(Path(folder), dimension=DIMENSION, linger_s=0.1)
        await index.ensure_schema()
        print(f"owner restarted:     {(time.perf_counter() - began) * 1000:6.0f} ms")
        await index.aclose()
    local = local_mode_ms(points)
    print(f"local mode:          p50 {local:6.1f} ms, {local / statistics.median(at_rest):.0f} times slower")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
