"""Clean-up after the truth has changed: purge of an old revision, deletion of a document."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.domain.deadline import Deadline
from app.domain.documents import StoredError
from app.domain.errors import IndexUnavailable
from app.domain.index import IndexFilter
from app.domain.jobs import JobState, Lease
from app.domain.ports import BlobStore, JobQueue, RevisionStore, TokenVectorStore, VectorIndex
from app.ingestion.tenure import Tenure, to_the_end

SWEEPS = 3


class Sweeper:
    """Removes points and token vectors until none is left."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        index: VectorIndex,
        token_vectors: TokenVectorStore | None,
        write_timeout_s: float = 10.0,
        renew_after_s: float = 10.0,
    ) -> None:
        self._queue, self._index, self._token_vectors = queue, index, token_vectors
        self._write_timeout_s, self._renew_after_s = write_timeout_s, renew_after_s

    async def sweep(self, lease: Lease, where: IndexFilter, chunk_ids: Sequence[UUID]) -> None:
        """`chunk_ids` are those the rows know; the index may hold others. Raises IndexUnavailable, LeaseLost."""
        tenure = Tenure(queue=self._queue, lease=lease, renew_after_s=self._renew_after_s)
        doomed = set(chunk_ids)
        for _ in range(SWEEPS):
            found = await self._index.ids(where, self._deadline())
            await self._delete_token_vectors(doomed | set(found))
            if not found:
                return await self._index.flush(self._deadline())
            doomed = set()
            await tenure.before_index_write()
            await to_the_end(self._index.delete_where(where, self._deadline()))
        raise IndexUnavailable(f"the index still holds {len(found)} deleted points", cause="bad_answer")

    async def _delete_token_vectors(self, chunk_ids: set[UUID]) -> None:
        if self._token_vectors is not None and chunk_ids:
            await to_the_end(self._token_vectors.delete(sorted(chunk_ids)))

    def _deadline(self) -> Deadline:
        return Deadline.after(self._write_timeout_s)


class PurgePipeline:
    """Handles `purge` jobs: points and chunk rows of a revision that is over; its original stays as history."""

    endures = True

    def __init__(self, *, revisions: RevisionStore, queue: JobQueue, blobs: BlobStore, sweeper: Sweeper) -> None:
        self._revisions, self._queue, self._blobs, self._sweeper = revisions, queue, blobs, sweeper

    async def handle(self, lease: Lease) -> None:
        """A no-op for a revision that a retry has brought back."""
        if lease.revision_id is None:
            raise ValueError(f"job {lease.id} names no revision")
        chunk_ids = await self._revisions.purgeable_chunk_ids(lease, lease.revision_id)
        if chunk_ids is None:
            return await self._queue.finish(lease, JobState.DONE)
        where = IndexFilter(workspace_id=lease.workspace_id, revision_ids=(lease.revision_id,))
        await self._sweeper.sweep(lease, where, chunk_ids)
        # Rows first: a blob without a row is swept, a row without its blob could not be restored.
        for key in await self._revisions.forget_revision(lease, lease.revision_id):
            await self._blobs.delete(key)
        return None

    async def abandon(self, lease: Lease, error: StoredError, state: JobState) -> None:
        """Ends the job; what is left is invisible."""
        await self._queue.finish(lease, state, error)


class DeletePipeline:
    """Handles `delete` jobs: points, then chunk rows, originals and the document itself.

    The index is swept twice, one write time-out apart: what a stopped worker began to write may land after the first.
    """

    endures = True

    def __init__(
        self,
        *,
        revisions: RevisionStore,
        queue: JobQueue,
        blobs: BlobStore,
        sweeper: Sweeper,
        write_timeout_s: float = 10.0,
    ) -> None:
        self._revisions, self._queue, self._blobs, self._sweeper = revisions, queue, blobs, sweeper
        self._write_timeout = timedelta(seconds=write_timeout_s)

    async def handle(self, lease: Lease) -> None:
        """The first claim sweeps and puts the job off, the second one finishes it."""
        where = IndexFilter(workspace_id=lease.workspace_id, document_ids=(lease.document_id,))
        chunk_ids = await self._revisions.document_chunk_ids(lease.document_id)
        await self._sweeper.sweep(lease, where, chunk_ids)
        if not lease.payload.get("swept"):
            return await self._queue.postpone(lease, delay=self._write_timeout, payload={"swept": True})
        for key in await self._revisions.document_blob_keys(lease.document_id):
            await self._blobs.delete(key)
        return await self._revisions.forget_document(lease)

    async def abandon(self, lease: Lease, error: StoredError, state: JobState) -> None:
        """Ends the job; what is left is invisible, and deleting again starts it anew."""
        await self._queue.finish(lease, state, error)
