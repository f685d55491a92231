"""The engine itself: one qdrant-edge shard. Only the owner process imports this; no call here releases the GIL.

The defects of qdrant-edge 0.9.0 that are handled here: no boolean filters (none are built), a rejected batch leaves
points behind and a phantom in the log (the batch's ids are deleted and flushed), updates are not synced to the disk
(flush by count and by time), ids come back as UUIDs, `bytes` in a payload become integers (the wire has none).
"""

import array
import json
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from app.clients.embedded_index.wire import Search, WireFilter, WireHit, WirePoint

META = "kroshka.json"
FORMAT = 1
INDEXED_FIELDS = ("workspaceId", "collectionId", "documentId", "revisionId")
FLUSH_EVERY_POINTS = 2_000
OPTIMIZE_AFTER_POINTS = 5_000
OPTIMIZE_DELETED_SHARE = 0.2
SCROLL_PAGE = 2_000
# The engine cuts ties at the limit in no particular order: a few more are asked for, sorted, and cut here.
TIE_MARGIN = 16


class Shard:
    """Points of one dimension in one folder."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.dimension = _agree_on_meta(folder, dimension)
        self._shard = _open(folder / "shard", self.dimension)
        self._unflushed = self._unoptimized = self._deleted = 0
        self._dirty = False
        self.flush()

    def flush(self) -> None:
        """What was written survives a power cut from here on."""
        self._shard.flush()
        self._unflushed, self._dirty, self.flushed_at = 0, False, time.monotonic()

    @property
    def dirty(self) -> bool:
        return self._dirty

    def count(self) -> int:
        total: int = self._shard.count(edge.CountRequest(exact=True))
        return total

    def upsert(self, points: list[WirePoint]) -> None:
        """All or nothing: when the engine rejects one point, what it took of the others is taken out again."""
        ids = [UUID(bytes=point.id) for point in points]
        try:
            self._shard.update(edge.UpdateOperation.upsert_points([_point(point) for point in points]))
        except Exception:
            self._shard.update(edge.UpdateOperation.delete_points(ids))
            self.flush()
            raise
        self._unoptimized += len(points)
        self._wrote(len(points))

    def delete(self, ids: list[bytes]) -> None:
        self._shard.update(edge.UpdateOperation.delete_points([UUID(bytes=one) for one in ids]))
        self._deleted += len(ids)
        self._wrote(len(ids))

    def delete_where(self, where: WireFilter) -> None:
        self._shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(where)))
        self._wrote(1)

    def ids(self, where: WireFilter) -> list[bytes]:
        found: list[bytes] = []
        offset = None
        while True:
            request = edge.ScrollRequest(
                limit=SCROLL_PAGE, offset=offset, filter=_filter(where), with_payload=False, with_vector=False
            )
            points, offset = self._shard.scroll(request)
            found += [point.id.bytes for point in points]
            if offset is None:
                return sorted(found)

    def search(self, request: Search) -> tuple[list[WireHit], list[WireHit], list[WireHit]]:
        """Dense list, lexical list, and the lexical pool scored by the dense vector, from one batch."""
        queries, kinds = _queries(request)
        if not queries:
            return [], [], []
        answers = dict(zip(kinds, self._shard.query_batch(edge.QueryBatchRequest(queries)), strict=True))
        terms = frozenset(_uints(request.indices))
        dense = _sorted([WireHit(p.id.bytes, p.score) for p in answers.get("dense", [])], request.limit)
        lexical = _sorted([_lexical_hit(p, terms) for p in answers.get("lexical", [])], request.limit)
        cosines = [WireHit(p.id.bytes, p.score) for p in answers.get("cosines", [])]
        return dense, lexical, cosines

    def optimize_if_due(self) -> bool:
        """Builds the quantized scan and drops deleted points; blocks every search meanwhile, so only when idle."""
        total = self.count()
        due = self._unoptimized >= OPTIMIZE_AFTER_POINTS or self._deleted > max(1_000, OPTIMIZE_DELETED_SHARE * total)
        if due:
            self._shard.optimize()
            self._unoptimized = self._deleted = 0
        return due

    def close(self) -> None:
        self.flush()
        self._shard.close()

    def _wrote(self, points: int) -> None:
        self._dirty = True
        self._unflushed += points
        if self._unflushed >= FLUSH_EVERY_POINTS:
            self.flush()


def _agree_on_meta(folder: Path, dimension: int) -> int:
    """The dimension of this folder: what it was made with, whatever is asked for now."""
    path = folder / META
    if path.exists():
        stored: int = json.loads(path.read_text())["dimension"]
        return stored
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"format": FORMAT, "dimension": dimension, "distance": "cosine"}))
    temporary.replace(path)
    return dimension


def _open(folder: Path, dimension: int) -> Any:
    if (folder / "edge_config.json").exists():
        return edge.EdgeShard.load(str(folder))
    folder.mkdir(exist_ok=True)
    shard = edge.EdgeShard.create(str(folder), _config(dimension))
    for field in INDEXED_FIELDS:
        shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
    return shard


def _config(dimension: int) -> edge.EdgeConfig:
    """No graph: scans are exact and optimising is cheap; int8 with rescoring makes them faster after it."""
    return edge.EdgeConfig(
        vectors={"dense": edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
        sparse_vectors={"lexical": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10),
        quantization_config=edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, always_ram=True),
        max_search_threads=2,
    )


def _floats(raw: bytes) -> list[float]:
    return _little_endian(array.array("f"), raw).tolist()


def _uints(raw: bytes) -> list[int]:
    return _little_endian(array.array("I"), raw).tolist()


def _little_endian(numbers: "array.array[Any]", raw: bytes) -> "array.array[Any]":  # subscriptable from 3.12
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _point(point: WirePoint) -> edge.Point:
    vectors: dict[str, Any] = {"dense": _floats(point.dense)}
    if point.indices:
        vectors["lexical"] = edge.SparseVector(_uints(point.indices), _floats(point.values))
    return edge.Point(UUID(bytes=point.id), vectors, point.payload)


def _filter(where: WireFilter) -> edge.Filter:
    """The workspace is always a condition."""
    conditions = [edge.FieldCondition(key="workspaceId", match=edge.MatchValue(where.workspace))]
    for key, values in (
        ("collectionId", where.collections),
        ("documentId", where.documents),
        ("revisionId", where.revisions),
    ):
        if values:
            conditions.append(edge.FieldCondition(key=key, match=edge.MatchAny(values)))
    return edge.Filter(must=conditions)


def _queries(request: Search) -> tuple[list[edge.QueryRequest], list[str]]:
    """The batch and what each of its requests is."""
    where, limit = _filter(request.where), request.limit + TIE_MARGIN
    queries, kinds = [], []
    if request.dense:
        quantized = edge.QuantizationSearchParams(rescore=True, oversampling=2.0)
        queries.append(_query(edge.Query.Nearest(_floats(request.dense), using="dense"), limit, where, quantized))
        kinds.append("dense")
    if request.indices:
        words = edge.Query.Nearest(edge.SparseVector(_uints(request.indices), _floats(request.values)), using="lexical")
        # The statistics are the workspace's, never the whole shard's: tenants would distort each other.
        corpus = edge.SearchParams(idf=edge.IdfParams(corpus=_filter(WireFilter(request.where.workspace))))
        queries.append(
            edge.QueryRequest(
                limit=limit, query=words, filter=where, params=corpus, with_payload=False, with_vector=["lexical"]
            )
        )
        kinds.append("lexical")
        if request.dense:
            queries.append(
                edge.QueryRequest(
                    limit=limit,
                    query=edge.Query.Nearest(_floats(request.dense), using="dense"),
                    prefetches=[edge.Prefetch(limit=limit, query=words, filter=where, params=corpus)],
                    params=edge.SearchParams(exact=True),
                    with_payload=False,
                )
            )
            kinds.append("cosines")
    return queries, kinds


def _query(
    query: edge.Query, limit: int, where: edge.Filter, quantization: edge.QuantizationSearchParams
) -> edge.QueryRequest:
    params = edge.SearchParams(quantization=quantization)
    return edge.QueryRequest(limit=limit, query=query, filter=where, params=params, with_payload=False)


def _lexical_hit(point: edge.ScoredPoint, terms: frozenset[int]) -> WireHit:
    held = point.vector["lexical"].indices
    return WireHit(point.id.bytes, point.score, len(terms.intersection(held)))


def _sorted(hits: list[WireHit], limit: int) -> list[WireHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
