"""The embedded engine behind the VectorIndex port."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import msgspec
import numpy as np

from app.clients.embedded_index.connection import OwnerConnection
from app.clients.embedded_index.validation import check_dense, check_points, check_sparse
from app.clients.embedded_index.wire import (
    Delete,
    DeleteWhere,
    Figures,
    Flush,
    Hello,
    Ids,
    Search,
    Upsert,
    WireFilter,
    WirePoint,
)
from app.domain.deadline import Deadline
from app.domain.errors import IndexUnavailable, ModelMismatch
from app.domain.index import DenseHit, IndexAnswer, IndexFilter, IndexPoint, IndexQuery, IndexStatus, LexicalHit
from app.domain.vectors import SparseVector

START_TIMEOUT_S = 30.0


class EmbeddedVectorIndex:
    """Any number of processes may hold one of these on the same folder; they share one owner process."""

    def __init__(self, folder: Path, *, dimension: int, linger_s: float = 2.0) -> None:
        self._folder, self._dimension = folder, dimension
        self._connection = OwnerConnection(folder=folder, dimension=dimension, linger_s=linger_s)

    async def ensure_schema(self) -> None:
        """Starts the owner if there is none."""
        figures = await self._figures(Deadline.after(START_TIMEOUT_S))
        if figures.dimension != self._dimension:
            raise ModelMismatch(
                f"the index in {self._folder} holds vectors of {figures.dimension} dimensions, "
                f"the embedder gives {self._dimension}: use another data folder or the former EMBEDDER"
            )

    async def search(self, query: IndexQuery, deadline: Deadline) -> IndexAnswer:
        if query.dense is not None:
            check_dense(query.dense, dimension=self._dimension, pointer="/dense")
        if query.lexical is not None:
            check_sparse(query.lexical, pointer="/lexical")
        indices, values = _sparse_bytes(query.lexical)
        dense = b"" if query.dense is None else query.dense.astype("<f4").tobytes()
        reply = await self._connection.call(
            Search(_wire_filter(query.filter), query.limit, dense, indices, values), deadline
        )
        cosines = {hit.id: hit.score for hit in [*reply.lexical_cosines, *reply.dense]}
        return IndexAnswer(
            dense=tuple(DenseHit(UUID(bytes=hit.id), hit.score) for hit in reply.dense),
            lexical=tuple(
                LexicalHit(
                    chunk_id=UUID(bytes=hit.id), score=hit.score, matched_terms=hit.matched, cosine=cosines.get(hit.id)
                )
                for hit in reply.lexical
            ),
        )

    async def upsert(self, points: Sequence[IndexPoint], deadline: Deadline) -> None:
        if not points:
            return
        check_points(points, dimension=self._dimension)
        await self._connection.call(Upsert([_wire_point(point) for point in points]), deadline)

    async def delete(self, chunk_ids: Sequence[UUID], deadline: Deadline) -> None:
        if chunk_ids:
            await self._connection.call(Delete([chunk_id.bytes for chunk_id in chunk_ids]), deadline)

    async def delete_where(self, where: IndexFilter, deadline: Deadline) -> None:
        await self._connection.call(DeleteWhere(_wire_filter(where)), deadline)

    async def ids(self, where: IndexFilter, deadline: Deadline) -> list[UUID]:
        reply = await self._connection.call(Ids(_wire_filter(where)), deadline)
        return [UUID(bytes=one) for one in reply.ids]

    async def flush(self, deadline: Deadline) -> None:
        await self._connection.call(Flush(), deadline)

    async def status(self, deadline: Deadline) -> IndexStatus:
        figures = await self._figures(deadline)
        return IndexStatus(engine=figures.engine, points=figures.points, bytes_on_disk=_disk_bytes(self._folder))

    async def owner_pid(self, deadline: Deadline) -> int:
        """Process id of the owner at this moment."""
        return (await self._figures(deadline)).pid

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _figures(self, deadline: Deadline) -> Figures:
        reply = await self._connection.call(Hello(), deadline)
        if reply.figures is None:
            raise IndexUnavailable("the index did not tell its figures", cause="bad_answer")
        return reply.figures


def _wire_filter(where: IndexFilter) -> WireFilter:
    return WireFilter(
        str(where.workspace_id),
        [str(one) for one in where.collection_ids],
        [str(one) for one in where.document_ids],
        [str(one) for one in where.revision_ids],
    )


def _wire_point(point: IndexPoint) -> WirePoint:
    indices, values = _sparse_bytes(point.lexical)
    payload = msgspec.to_builtins(point.payload)
    return WirePoint(point.chunk_id.bytes, point.dense.astype("<f4").tobytes(), indices, values, payload)


def _sparse_bytes(vector: SparseVector | None) -> tuple[bytes, bytes]:
    if vector is None:
        return b"", b""
    return np.asarray(vector.indices, dtype="<u4").tobytes(), np.asarray(vector.values, dtype="<f4").tobytes()


def _disk_bytes(folder: Path) -> int:
    """What the files really take (the engine's files are sparse)."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
