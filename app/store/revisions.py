"""What the ingestion pipelines write: states, chunk rows, verifications, the flip, and what is forgotten."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import Select, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import Chunk, ChunkRow, Generation, Revision, RevisionState, StoredError
from app.domain.errors import Conflict
from app.domain.jobs import JobState, Lease
from app.store import forgetting, tables
from app.store.accepting import chunks_held, is_current
from app.store.database import Database
from app.store.flipping import fail, flip
from app.store.generations import WRITTEN
from app.store.queueing import guard_or_cancel
from app.store.rows import chunk_row, chunk_values, generation_of, revision_of
from app.store.tables import chunk, document, generation, revision, revision_generation
from app.store.types import database_time

SLICE_ROWS = 1_000


class SqlRevisionStore:
    """The RevisionStore port. Every write is fenced by its lease in the same transaction and prolongs it."""

    def __init__(self, *, database: Database, lease_s: float = 30.0) -> None:
        self._database, self._lease_s = database, lease_s

    async def revision(self, revision_id: UUID) -> Revision | None:
        """None when it is unknown or its document is being deleted."""
        statement = (
            select(revision, document.c.workspace_id, document.c.collection_id, document.c.source_name)
            .join(document, document.c.id == revision.c.document_id)
            .where(revision.c.id == revision_id, document.c.deleted_at.is_(None))
        )
        rows = await self._database.fetch(statement)
        return revision_of(rows[0]) if rows else None

    async def is_overtaken(self, revision: Revision) -> bool:
        """Whether a higher number is current already."""
        columns = tables.revision.c
        higher = (columns.document_id == revision.document_id, columns.number > revision.number)
        return bool(await self._database.fetch(select(columns.id).where(*higher, *is_current(columns))))

    async def set_state(self, lease: Lease, revision_id: UUID, state: RevisionState) -> None:
        """Raises LeaseLost or JobCancelled."""

        async def transaction(connection: AsyncConnection) -> None:
            await guard_or_cancel(connection, lease, lease_s=self._lease_s)
            await connection.execute(
                update(revision).where(revision.c.id == revision_id).values(state=state.value, error=None)
            )

        await self._database.write(transaction)

    async def replace_chunks(self, lease: Lease, revision: Revision, chunks: Sequence[Chunk]) -> None:
        """Slices of 1,000 rows; nobody sees them before the flip. Raises Conflict for a revision that was ever current.

        The first slice clears what an earlier attempt left, the last one sets `chunked`.
        """
        rows = [chunk_values(each, revision) for each in chunks]
        starts = range(0, max(1, len(rows)), SLICE_ROWS)
        for start in starts:
            write = partial(
                _write_slice,
                lease=lease,
                lease_s=self._lease_s,
                revision_id=revision.id,
                rows=rows[start : start + SLICE_ROWS],
                first=start == 0,
                total=len(rows) if start == starts[-1] else None,
            )
            await self._database.write(write)

    async def chunk_rows(self, revision_id: UUID) -> list[ChunkRow]:
        """All chunks of a revision, in order."""
        statement = select(chunk).where(chunk.c.revision_id == revision_id).order_by(chunk.c.chunk_index)
        return [chunk_row(row) for row in await self._database.fetch(statement)]

    async def chunk_versions(self, chunk_ids: Sequence[UUID]) -> dict[UUID, int]:
        """Row versions now, of those rows that exist."""
        statement = select(chunk.c.id, chunk.c.version).where(chunk.c.id.in_(chunk_ids))
        return {row.id: row.version for row in await self._database.fetch(statement)}

    async def collection_chunk_count(self, collection_id: UUID, *, without_document: UUID) -> int:
        """Chunks of current revisions of the collection's other documents."""
        rows = await self._database.fetch(chunks_held(collection_id, without_document=without_document))
        return int(rows[0][0])

    async def generations(self) -> list[Generation]:
        """Those that every write goes to: active, building, standby."""
        statement = select(generation).where(generation.c.state.in_(WRITTEN)).order_by(generation.c.id)
        return [generation_of(row) for row in await self._database.fetch(statement)]

    async def record_verified(self, lease: Lease, revision_id: UUID, generation_id: UUID, points: int) -> None:
        """The index holds exactly this revision's points in this generation. Raises LeaseLost or JobCancelled."""

        async def transaction(connection: AsyncConnection) -> None:
            await guard_or_cancel(connection, lease, lease_s=self._lease_s)
            key = {"revision_id": revision_id, "generation_id": generation_id}
            await connection.execute(delete(revision_generation).filter_by(**key))
            row = {**key, "points": points, "verified_at": database_time()}
            await connection.execute(insert(revision_generation).values(**row))
            indexing = RevisionState.INDEXING.value
            await connection.execute(update(revision).where(revision.c.id == revision_id).values(state=indexing))

        await self._database.write(transaction)

    async def flip(self, lease: Lease, revision: Revision, *, purge_after: timedelta) -> str:
        """`flipped`, `again`, `deleted` or `superseded`. Raises LeaseLost or JobCancelled."""
        return await self._database.write(partial(flip, lease=lease, revision_id=revision.id, purge_after=purge_after))

    async def fail(
        self, lease: Lease, revision_id: UUID, error: StoredError, *, job_state: JobState, purge_after: timedelta
    ) -> None:
        """Ends job and revision as failed or cancelled, and queues the purge of what they left. Raises LeaseLost."""
        await self._database.write(
            partial(
                fail, lease=lease, revision_id=revision_id, error=error, job_state=job_state, purge_after=purge_after
            )
        )

    async def purgeable_chunk_ids(self, lease: Lease, revision_id: UUID) -> list[UUID] | None:
        """None when the revision must stay: a retry may have flipped it meanwhile. Raises LeaseLost or JobCancelled."""
        return await self._database.write(
            partial(forgetting.purgeable_chunk_ids, lease=lease, lease_s=self._lease_s, revision_id=revision_id)
        )

    async def forget_revision(self, lease: Lease, revision_id: UUID) -> list[str]:
        """Ends the purge; returns keys of blobs that nobody refers to any more. Raises LeaseLost."""
        return await self._database.write(partial(forgetting.forget_revision, lease=lease, revision_id=revision_id))

    async def document_chunk_ids(self, document_id: UUID) -> list[UUID]:
        """Of all its revisions."""
        statement = _of_document(select(chunk.c.id).join(revision, revision.c.id == chunk.c.revision_id), document_id)
        return [row.id for row in await self._database.fetch(statement)]

    async def document_blob_keys(self, document_id: UUID) -> list[str]:
        """Of all its revisions."""
        statement = _of_document(select(revision.c.blob_key), document_id).distinct()
        return [row.blob_key for row in await self._database.fetch(statement)]

    async def forget_document(self, lease: Lease) -> None:
        """Ends the deletion: rows of the document, and of its collection if that was waiting. Raises LeaseLost."""
        await self._database.write(partial(forgetting.forget_document, lease=lease))


def _of_document(statement: Select[*tuple[object, ...]], document_id: UUID) -> Select[*tuple[object, ...]]:
    return statement.where(revision.c.document_id == document_id)


async def _write_slice(
    connection: AsyncConnection,
    *,
    lease: Lease,
    lease_s: float,
    revision_id: UUID,
    rows: list[dict[str, object]],
    first: bool,
    total: int | None,
) -> None:
    await guard_or_cancel(connection, lease, lease_s=lease_s)
    if first:
        await _clear(connection, revision_id)
    if rows:
        await connection.execute(insert(chunk), rows)
    if total is not None:
        values = {"state": RevisionState.CHUNKED.value, "chunk_count": total}
        await connection.execute(update(revision).where(revision.c.id == revision_id).values(**values))


async def _clear(connection: AsyncConnection, revision_id: UUID) -> None:
    was_current = select(revision.c.current_from).where(revision.c.id == revision_id)
    found = (await connection.execute(was_current)).first()
    if found is None or found.current_from is not None:
        raise Conflict(f"revision {revision_id} is or was current: its chunks stay as they are")
    # An old verification would let a new set of rows flip unverified.
    await connection.execute(delete(revision_generation).where(revision_generation.c.revision_id == revision_id))
    await connection.execute(delete(chunk).where(chunk.c.revision_id == revision_id))
    values = {"state": RevisionState.CHUNKING.value, "chunk_count": 0}
    await connection.execute(update(revision).where(revision.c.id == revision_id).values(**values))
