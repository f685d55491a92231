"""A document's way after it was accepted: parse → chunk → limits → embed ∥ lexical → upsert → verify → flip."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.config.knobs import RagConfig
from app.domain.documents import Chunk, ChunkRow, Revision, RevisionState, StoredError
from app.domain.errors import NoTextFound, TooManyChunks, TransientError
from app.domain.jobs import JobState, Lease
from app.domain.ports import BlobStore, JobQueue, RevisionStore, TokenCounter
from app.ingestion.filling import IndexFiller
from app.ingestion.seams import Configuration, IngestObserver, IngestReport, MakeChunks, Parse
from app.ingestion.tenure import Tenure
from app.ingestion.timing import StageTimes

MAX_ROUNDS = 5

RESUMABLE = (RevisionState.CHUNKED, RevisionState.EMBEDDING, RevisionState.INDEXING)
SUPERSEDED = StoredError("superseded", "a newer upload of this document was indexed first")


class IngestionPipeline:
    """Handles `ingest` jobs. Every step can be repeated: a crash leaves only what nobody can see.

    `purge_after` is how long the old revision's points stay for searches that began before the flip (twice the
    longest search); `write_timeout_s` the longest index write, `renew_after_s` at most the lease minus that.
    """

    endures = False

    def __init__(
        self,
        *,
        revisions: RevisionStore,
        queue: JobQueue,
        blobs: BlobStore,
        filler: IndexFiller,
        parse: Parse,
        chunk: MakeChunks,
        token_counter: TokenCounter | None,
        configuration: Configuration,
        purge_after: timedelta = timedelta(seconds=60),
        write_timeout_s: float = 10.0,
        renew_after_s: float = 10.0,
        observer: IngestObserver | None = None,
    ) -> None:
        self._revisions, self._queue, self._blobs, self._filler = revisions, queue, blobs, filler
        self._parse, self._chunk, self._token_counter = parse, chunk, token_counter
        self._configuration, self._observer = configuration, observer
        self._write_timeout = timedelta(seconds=write_timeout_s)
        self._purge_after = max(purge_after, self._write_timeout)
        self._renew_after_s = renew_after_s

    async def handle(self, lease: Lease) -> None:
        """Makes the revision current. Raises a DocumentError, or what may pass (TransientError)."""
        revision = await self._wanted(lease)
        if revision is None:
            return
        knobs = (await self._configuration.resolve(lease.workspace_id)).config
        tenure = Tenure(queue=self._queue, lease=lease, renew_after_s=self._renew_after_s)
        times = StageTimes()
        rows = await self._stored_rows(revision)
        if rows is None:
            rows = await self._parse_and_chunk(tenure, revision, knobs, times)
        await self._index_and_flip(tenure, revision, rows, knobs, times)

    async def abandon(self, lease: Lease, error: StoredError, state: JobState) -> None:
        """The revision failed (or was cancelled), with its reason; what it left is purged."""
        revision = await self._revisions.revision(_revision_id(lease))
        if revision is None:
            await self._queue.finish(lease, state, error)
            return
        # Not at once: a write that was under way may still land.
        await self._revisions.fail(lease, revision.id, error, job_state=state, purge_after=self._write_timeout)
        self._report(revision, "cancelled" if state is JobState.CANCELLED else "failed")

    async def _wanted(self, lease: Lease) -> Revision | None:
        """The revision to work on; None after ending a job that has nothing left to do."""
        revision = await self._revisions.revision(_revision_id(lease))
        if revision is None:
            await self._queue.finish(lease, JobState.CANCELLED)
        elif revision.is_current:
            await self._queue.finish(lease, JobState.DONE)
        elif await self._revisions.is_overtaken(revision):
            await self.abandon(lease, SUPERSEDED, JobState.CANCELLED)
        else:
            return revision
        return None

    async def _stored_rows(self, revision: Revision) -> list[ChunkRow] | None:
        """The chunk rows of an attempt that got past chunking; None when there is none."""
        if revision.state not in RESUMABLE:
            return None
        rows = await self._revisions.chunk_rows(revision.id)
        return rows if len(rows) == revision.chunk_count else None

    async def _parse_and_chunk(
        self, tenure: Tenure, revision: Revision, knobs: RagConfig, times: StageTimes
    ) -> list[ChunkRow]:
        await self._revisions.set_state(tenure.lease, revision.id, RevisionState.PARSING)
        with times.stage("parse"):
            data = await self._blobs.read(revision.blob_key)
            document = await asyncio.to_thread(
                self._parse, data, source_name=revision.source_name, media_type=revision.media_type
            )
        with times.stage("chunk"):
            count_tokens = self._token_counter.count_tokens if self._token_counter else None
            chunks = await asyncio.to_thread(self._chunk, document, revision.chunking, count_tokens=count_tokens)
            await self._check_limits(revision, chunks, knobs)
            await self._filler.clear(tenure, revision)
            await self._revisions.replace_chunks(tenure.lease, revision, chunks)
        return await self._revisions.chunk_rows(revision.id)

    async def _check_limits(self, revision: Revision, chunks: Sequence[Chunk], knobs: RagConfig) -> None:
        if not chunks:
            raise NoTextFound("the file holds no text")
        if len(chunks) > knobs.max_chunks_per_document:
            raise TooManyChunks(actual=len(chunks), limit=knobs.max_chunks_per_document, scope="document")
        limit = knobs.max_chunks_per_collection
        if limit is None:
            return
        others = await self._revisions.collection_chunk_count(
            revision.collection_id, without_document=revision.document_id
        )
        if others + len(chunks) > limit:
            raise TooManyChunks(actual=others + len(chunks), limit=limit, scope="collection")

    async def _index_and_flip(
        self, tenure: Tenure, revision: Revision, rows: list[ChunkRow], knobs: RagConfig, times: StageTimes
    ) -> None:
        for _ in range(MAX_ROUNDS):
            await self._fill_generations(tenure, revision, rows, knobs, times)
            with times.stage("flip"):
                outcome = await self._revisions.flip(tenure.lease, revision, purge_after=self._purge_after)
            if outcome != "again":
                return await self._end(tenure.lease, revision, outcome, len(rows), times)
        raise TransientError("the generations of the index keep changing")

    async def _fill_generations(
        self, tenure: Tenure, revision: Revision, rows: list[ChunkRow], knobs: RagConfig, times: StageTimes
    ) -> None:
        generations = await self._revisions.generations()
        if not generations:
            raise TransientError("no embedding generation is active yet")
        for generation in generations:
            points = await self._filler.fill(tenure, revision, rows, generation, knobs=knobs, times=times)
            await self._revisions.record_verified(tenure.lease, revision.id, generation.id, points)

    async def _end(self, lease: Lease, revision: Revision, outcome: str, chunks: int, times: StageTimes) -> None:
        if outcome == "deleted":
            await self._queue.finish(lease, JobState.CANCELLED)
        elif outcome == "superseded":
            await self.abandon(lease, SUPERSEDED, JobState.CANCELLED)
        else:
            self._report(revision, "indexed", chunks, times)

    def _report(self, revision: Revision, result: str, chunks: int = 0, times: StageTimes | None = None) -> None:
        if self._observer is None:
            return
        self._observer(
            IngestReport(
                media_type=revision.media_type,
                result=result,
                chunks=chunks,
                size_bytes=revision.size_bytes,
                stage_s=times.seconds if times else {},
            )
        )


def _revision_id(lease: Lease) -> UUID:
    if lease.revision_id is None:
        raise ValueError(f"job {lease.id} names no revision")
    return lease.revision_id
