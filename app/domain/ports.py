"""The seams of the service: what the pipelines need, named by role. Adapters live in clients/ and store/.

All async methods may raise the role's `…Unavailable` (transient) and must honour the deadline they are given.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from app.domain.deadline import Deadline
from app.domain.documents import (
    Accepted,
    Chunk,
    ChunkRow,
    Collection,
    Document,
    Generation,
    NewDocument,
    Revision,
    RevisionState,
    StoredError,
)
from app.domain.index import IndexAnswer, IndexFilter, IndexPoint, IndexQuery, IndexStatus
from app.domain.jobs import Job, JobProgress, JobState, Lease
from app.domain.search import Passage, SearchScope, SearchSnapshot, VisibleChunk
from app.domain.vectors import EmbeddingModel, PassageVectors, QueryVectors, TokenMatrix


class Embedder(Protocol):
    """Turns text into vectors. Queries and passages are different things (prefixes)."""

    @property
    def model(self) -> EmbeddingModel: ...

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        """May cut a text that is too long. A waiting query goes before the next batch of passages."""

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        """Never cuts: InvalidInput names the first text above `max_input_tokens`. Results keep the input's order."""

    async def aclose(self) -> None: ...


class TokenCounter(Protocol):
    """The embedder's own tokenizer; called from a worker thread, never from the event loop."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a passage, with prefix and special tokens."""


class RerankQuery(Struct, frozen=True, kw_only=True):
    """The query in both forms that rerankers take."""

    text: str
    vectors: QueryVectors | None


class RerankCandidate(Struct, frozen=True, kw_only=True):
    """A candidate in fused order; `lexical` is its BM25 score when it passed the gate, else None."""

    chunk_id: UUID
    text: str
    fused: float
    cosine: float | None
    lexical: float | None


class RerankScores(Struct, frozen=True, kw_only=True):
    """One score a candidate, in the candidates' order; None where the reranker had nothing to say.

    `relevance_scale` tells what the scores are: `sigmoid` (0..1) or `raw` (only their order means something).
    """

    scores: tuple[float | None, ...]
    dialect: str
    model: str
    relevance_scale: str


class Reranker(Protocol):
    """A cross-encoder or late interaction: two forms of one port."""

    async def rank(self, query: RerankQuery, candidates: Sequence[RerankCandidate], deadline: Deadline) -> RerankScores:
        """Scores for all candidates of one scale, or RerankerUnavailable: never a mixture."""

    async def aclose(self) -> None: ...


class TokenVectorStore(Protocol):
    """Token vectors of late interaction, by chunk id, beside the index."""

    async def put(self, matrices: Mapping[UUID, TokenMatrix]) -> None: ...

    async def get(self, chunk_ids: Sequence[UUID]) -> dict[UUID, TokenMatrix]:
        """Those that exist; missing ids are left out."""

    async def delete(self, chunk_ids: Sequence[UUID]) -> None: ...

    async def size_bytes(self) -> int: ...


class VectorIndex(Protocol):
    """Dense and lexical vectors of chunks."""

    async def ensure_schema(self) -> None:
        """Creates what is missing. Raises ModelMismatch when the index has another dimension."""

    async def search(self, query: IndexQuery, deadline: Deadline) -> IndexAnswer: ...

    async def upsert(self, points: Sequence[IndexPoint], deadline: Deadline) -> None:
        """All points are validated before the first is written (InvalidInput); returns when they can be searched."""

    async def delete(self, chunk_ids: Sequence[UUID], deadline: Deadline) -> None: ...

    async def delete_where(self, where: IndexFilter, deadline: Deadline) -> None: ...

    async def ids(self, where: IndexFilter, deadline: Deadline) -> list[UUID]:
        """Ids of all matching points, in ascending order."""

    async def flush(self, deadline: Deadline) -> None:
        """What was written survives a power cut when this returns. No-op on a server."""

    async def status(self, deadline: Deadline) -> IndexStatus: ...

    async def aclose(self) -> None: ...


class BlobStore(Protocol):
    """Originals, by key. Keys are ids, never names."""

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Streams to the final key; returns the number of bytes. An aborted stream leaves nothing."""

    async def read(self, key: str) -> bytes: ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def delete(self, key: str) -> None:
        """Deleting what is not there is not an error."""


class DocumentPage(Struct, frozen=True, kw_only=True):
    """One page of a listing; `next_cursor` is opaque, None at the end."""

    items: tuple[Document, ...]
    next_cursor: str | None = None


class CollectionPage(Struct, frozen=True, kw_only=True):
    """One page of a listing; `next_cursor` is opaque, None at the end."""

    items: tuple[Collection, ...]
    next_cursor: str | None = None


class Catalog(Protocol):
    """Collections and documents, as people manage them."""

    async def ensure_workspace(self, workspace_id: UUID, name: str) -> None: ...

    async def create_collection(self, workspace_id: UUID, name: str, description: str = "") -> Collection:
        """Raises NameTaken."""

    async def collection(self, workspace_id: UUID, collection_id: UUID) -> Collection: ...

    async def check_collection(self, workspace_id: UUID, collection_id: UUID) -> None:
        """Raises CollectionNotFound; cheaper than `collection`, which counts."""

    async def find_collection(self, workspace_id: UUID, name: str) -> Collection | None:
        """By name, without regard to case."""

    async def collections(self, workspace_id: UUID, *, limit: int, cursor: str | None = None) -> CollectionPage: ...

    async def delete_collection(self, workspace_id: UUID, collection_id: UUID) -> None:
        """Not found by any search from this moment; its documents' delete jobs are queued in the same transaction."""

    async def accept(self, new: NewDocument, *, max_collection_chunks: int | None = None) -> Accepted:
        """Document, revision and job in one transaction; `unchanged` when nothing has to be done."""

    async def document(self, workspace_id: UUID, document_id: UUID) -> Document: ...

    async def documents(
        self,
        workspace_id: UUID,
        *,
        collection_id: UUID | None = None,
        name_contains: str | None = None,
        status: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> DocumentPage: ...

    async def original(self, workspace_id: UUID, document_id: UUID) -> Revision:
        """The current revision, or the newest while none is current. Raises DocumentNotFound."""

    async def delete_document(self, workspace_id: UUID, document_id: UUID) -> UUID:
        """Not found by any search from this moment; returns the delete job's id."""

    async def chunks(self, workspace_id: UUID, document_id: UUID) -> list[ChunkRow]:
        """Chunks of the current revision, in order."""


class RevisionStore(Protocol):
    """What the ingestion pipeline writes. Every method that takes a lease raises LeaseLost (or JobCancelled)."""

    async def revision(self, revision_id: UUID) -> Revision | None: ...

    async def is_overtaken(self, revision: Revision) -> bool:
        """Whether a higher number is current already: then this revision has nothing left to do."""

    async def set_state(self, lease: Lease, revision_id: UUID, state: RevisionState) -> None: ...

    async def replace_chunks(self, lease: Lease, revision: Revision, chunks: Sequence[Chunk]) -> None:
        """Deletes the revision's rows and writes these in slices of 1,000; state `chunked` comes last."""

    async def chunk_rows(self, revision_id: UUID) -> list[ChunkRow]:
        """All chunks of a revision, in order."""

    async def chunk_versions(self, chunk_ids: Sequence[UUID]) -> dict[UUID, int]:
        """Row versions as they are now: a writer reads them again after its upsert, to see edits that came between."""

    async def collection_chunk_count(self, collection_id: UUID, *, without_document: UUID) -> int:
        """Chunks of current revisions of the collection's other documents."""

    async def generations(self) -> list[Generation]:
        """Those that every write goes to: active, building, standby."""

    async def record_verified(self, lease: Lease, revision_id: UUID, generation_id: UUID, points: int) -> None: ...

    async def flip(self, lease: Lease, revision: Revision, *, purge_after: timedelta) -> str:
        """One transaction: makes the revision current, queues the old one's purge and finishes the job.

        Returns `flipped`, `again` (a generation has no verification yet), `deleted` or `superseded`.
        """

    async def fail(
        self, lease: Lease, revision_id: UUID, error: StoredError, *, job_state: JobState, purge_after: timedelta
    ) -> None:
        """Ends the job and marks its revision failed or cancelled; queues the purge of what it left."""

    async def purgeable_chunk_ids(self, lease: Lease, revision_id: UUID) -> list[UUID] | None:
        """Chunk ids of a revision that may go; None when it must stay (a retry has flipped it meanwhile)."""

    async def forget_revision(self, lease: Lease, revision_id: UUID) -> list[str]:
        """Deletes a purged revision's chunk rows and finishes the job.

        The last ten originals of a document stay as its history; returns the keys of the blobs that nobody refers to
        any more.
        """

    async def document_chunk_ids(self, document_id: UUID) -> list[UUID]: ...

    async def document_blob_keys(self, document_id: UUID) -> list[str]: ...

    async def forget_document(self, lease: Lease) -> None:
        """Deletes a deleted document's rows and finishes the job."""


class JobQueue(Protocol):
    """Leases. At-least-once: a job whose worker dies is claimed again when its lease runs out."""

    async def claim(self, worker: str) -> Lease | None:
        """The oldest due job, fair between workspaces, one running job a document."""

    async def heartbeat(self, lease: Lease, progress: JobProgress | None = None) -> bool:
        """Prolongs the lease; True when cancelling was asked for. Raises LeaseLost."""

    async def retry_later(self, lease: Lease, error: StoredError, *, delay: timedelta, counts: bool) -> None:
        """Back to the queue; `counts` says whether this was a failed attempt."""

    async def finish(self, lease: Lease, state: JobState, error: StoredError | None = None) -> None: ...

    async def postpone(self, lease: Lease, *, delay: timedelta, payload: dict[str, Any] | None = None) -> None:
        """Back to the queue without blame: the worker stops, or the next step is not due (`payload` is its note)."""

    async def failures(self, lease: Lease) -> int:
        """Failed attempts in a row; an attempt that made progress clears them. Raises LeaseLost."""

    async def running_workers(self, worker_prefix: str) -> list[str]:
        """Workers that hold a job now and whose id begins so (all workers of one host)."""

    async def release_dead_workers(self, dead: Sequence[str]) -> int:
        """Cuts the leases of these workers to now + the write time-out: their last write may still land."""

    async def prune(self, *, keep: timedelta) -> int:
        """Deletes jobs that ended longer ago than this; returns how many."""

    async def job(self, workspace_id: UUID, job_id: UUID) -> Job: ...

    async def jobs(self, workspace_id: UUID, *, state: JobState | None = None, limit: int = 50) -> list[Job]: ...

    async def cancel(self, workspace_id: UUID, job_id: UUID) -> Job: ...

    async def counts(self) -> dict[tuple[str, str], int]:
        """Jobs by (kind, state)."""


class SearchCatalog(Protocol):
    """The two reads of a search."""

    async def snapshot(self, scope: SearchScope) -> SearchSnapshot:
        """One statement. Raises WorkspaceNotFound or CollectionNotFound."""

    async def visible(self, chunk_ids: Sequence[UUID], snapshot: SearchSnapshot) -> list[VisibleChunk]:
        """Those whose revision was current at the snapshot's epoch and that are enabled and not deleted."""

    async def passages(self, chunk_ids: Sequence[UUID]) -> dict[UUID, Passage]: ...


class SettingsRows(Protocol):
    """The settings rows: `scope` is a workspace's id or `__platform__`."""

    async def read(self, scope: str) -> tuple[dict[str, object], int]:
        """Overrides (camelCase names) and the row's version; ({}, 0) when there is no row."""

    async def write(self, scope: str, overrides: dict[str, object], *, expected_version: int | None) -> int:
        """Replaces the row; returns its new version. Raises PreconditionFailed."""
