"""Points for tests, and an exact in-memory index that the real ones are compared with."""

import math
from collections.abc import Sequence
from uuid import UUID, uuid5

import numpy as np

from app.domain.deadline import Deadline
from app.domain.errors import InvalidInput
from app.domain.index import (
    DenseHit,
    IndexAnswer,
    IndexFilter,
    IndexPoint,
    IndexQuery,
    IndexStatus,
    LexicalHit,
    PointPayload,
)
from app.domain.vectors import FloatArray, SparseVector

SPACE = UUID(int=42)
WORKSPACE, OTHER_WORKSPACE = uuid5(SPACE, "workspace"), uuid5(SPACE, "other workspace")
COLLECTION, DOCUMENT, REVISION = uuid5(SPACE, "collection"), uuid5(SPACE, "document"), uuid5(SPACE, "revision")


def unit(*numbers: float) -> FloatArray:
    """L2-normalised float32."""
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def sparse(*terms: int) -> SparseVector:
    return SparseVector(tuple(sorted(terms)), (1.0,) * len(terms))


def point(
    number: int,
    dense: FloatArray,
    lexical: SparseVector,
    *,
    workspace_id: UUID = WORKSPACE,
    collection_id: UUID = COLLECTION,
    document_id: UUID = DOCUMENT,
    revision_id: UUID = REVISION,
) -> IndexPoint:
    """A point whose id grows with its number."""
    payload = PointPayload(
        document_id=document_id,
        collection_id=collection_id,
        workspace_id=workspace_id,
        revision_id=revision_id,
        revision=1,
        source_name="Регламент.md",
        chunk_index=number,
        text="текст",
        content_start=0,
        section_path=("А", "Б"),
        chunk_strategy="structure_aware",
        page=None,
        content_hash="0",
        lexical_version=1,
    )
    return IndexPoint(chunk_id=UUID(int=number), dense=dense, lexical=lexical, payload=payload)


class MemoryVectorIndex:
    """Exact cosine, and term weights × ln((n − df + 0.5) / (df + 0.5) + 1) over the workspace."""

    def __init__(self, *, dimension: int) -> None:
        self._dimension, self._points = dimension, dict[UUID, IndexPoint]()

    async def ensure_schema(self) -> None: ...

    async def search(self, query: IndexQuery, deadline: Deadline) -> IndexAnswer:
        inside = self._matching(query.filter)
        dense = [DenseHit(p.chunk_id, float(p.dense @ query.dense)) for p in inside] if query.dense is not None else []
        dense.sort(key=lambda hit: (-hit.cosine, hit.chunk_id))
        lexical = self._lexical(inside, query) if query.lexical is not None else []
        return IndexAnswer(dense=tuple(dense[: query.limit]), lexical=tuple(lexical[: query.limit]))

    async def upsert(self, points: Sequence[IndexPoint], deadline: Deadline) -> None:
        for place, one in enumerate(points):
            if one.dense.shape != (self._dimension,) or not np.isfinite(one.dense).all():
                raise InvalidInput(f"/points/{place}/dense", "wrong")
            if list(one.lexical.indices) != sorted(set(one.lexical.indices)):
                raise InvalidInput(f"/points/{place}/lexical", "wrong")
        if len({one.chunk_id for one in points}) != len(points):
            raise InvalidInput("/points", "twice")
        self._points |= {one.chunk_id: one for one in points}

    async def delete(self, chunk_ids: Sequence[UUID], deadline: Deadline) -> None:
        for chunk_id in chunk_ids:
            self._points.pop(chunk_id, None)

    async def delete_where(self, where: IndexFilter, deadline: Deadline) -> None:
        await self.delete([p.chunk_id for p in self._matching(where)], deadline)

    async def ids(self, where: IndexFilter, deadline: Deadline) -> list[UUID]:
        return sorted(p.chunk_id for p in self._matching(where))

    async def flush(self, deadline: Deadline) -> None: ...

    async def status(self, deadline: Deadline) -> IndexStatus:
        return IndexStatus(engine="memory", points=len(self._points))

    async def aclose(self) -> None: ...

    def _matching(self, where: IndexFilter) -> list[IndexPoint]:
        def allows(payload: PointPayload) -> bool:
            return (
                payload.workspace_id == where.workspace_id
                and (not where.collection_ids or payload.collection_id in where.collection_ids)
                and (not where.document_ids or payload.document_id in where.document_ids)
                and (not where.revision_ids or payload.revision_id in where.revision_ids)
            )

        return [p for p in self._points.values() if allows(p.payload)]

    def _lexical(self, inside: list[IndexPoint], query: IndexQuery) -> list[LexicalHit]:
        assert query.lexical is not None
        corpus = [p for p in self._points.values() if p.payload.workspace_id == query.filter.workspace_id]
        hits = []
        for one in inside:
            weights = dict(zip(one.lexical.indices, one.lexical.values, strict=True))
            held = [term for term in query.lexical.indices if term in weights]
            if not held:
                continue
            score = sum(weights[term] * _idf(term, corpus) for term in held)
            cosine = float(one.dense @ query.dense) if query.dense is not None else None
            hits.append(LexicalHit(chunk_id=one.chunk_id, score=score, matched_terms=len(held), cosine=cosine))
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def _idf(term: int, corpus: list[IndexPoint]) -> float:
    frequency = sum(term in p.lexical.indices for p in corpus)
    return math.log((len(corpus) - frequency + 0.5) / (frequency + 0.5) + 1)
