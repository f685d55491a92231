"""What the API answers, in camelCase. Times are RFC 3339 in UTC."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from app.api.problems import Problem
from app.config.layers import KnobWarning
from app.domain.documents import ChunkRow, Collection, Document, StoredError
from app.domain.jobs import Job
from app.domain.search import KnobValue, SearchResult


class CollectionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A collection with what it holds. `bytes` are those of the originals."""

    id: UUID
    name: str
    description: str
    documents: int
    chunks: int
    bytes: int
    created_at: datetime

    @classmethod
    def of(cls, collection: Collection) -> "CollectionView":
        return cls(
            id=collection.id,
            name=collection.name,
            description=collection.description,
            documents=collection.documents,
            chunks=collection.chunks,
            bytes=collection.bytes,
            created_at=collection.created_at,
        )


class CollectionList(Struct, frozen=True, kw_only=True, rename="camel"):
    """One page, by name."""

    items: tuple[CollectionView, ...]
    next_cursor: str | None = None


class ErrorView(Struct, frozen=True, kw_only=True):
    """Why a document or job failed: a stable code and a sentence for a person."""

    code: str
    message: str

    @classmethod
    def of(cls, error: StoredError | None) -> "ErrorView | None":
        return None if error is None else cls(code=error.code, message=error.message)


class PendingView(Struct, frozen=True, kw_only=True):
    """A replacement on its way, or failed, while the current revision goes on serving."""

    revision: int
    status: str
    error: ErrorView | None = None


class DocumentView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A document. `status` is one of queued, parsing, chunking, embedding, indexing, indexed, failed, cancelled,
    deleting."""

    id: UUID
    collection_id: UUID
    source_name: str
    description: str
    attributes: dict[str, Any]
    agent_ids: tuple[str, ...]
    channel_ids: tuple[str, ...]
    principal_ids: tuple[str, ...]
    role_ids: tuple[str, ...]
    status: str
    revision: int
    size_bytes: int
    sha256: str
    media_type: str
    chunk_count: int
    error: ErrorView | None
    pending: PendingView | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, document: Document) -> "DocumentView":
        pending = document.pending
        return cls(
            id=document.id,
            collection_id=document.collection_id,
            source_name=document.source_name,
            description=document.description,
            attributes=document.attributes,
            agent_ids=document.scopes.agent_ids,
            channel_ids=document.scopes.channel_ids,
            principal_ids=document.scopes.principal_ids,
            role_ids=document.scopes.role_ids,
            status=document.status,
            revision=document.revision,
            size_bytes=document.size_bytes,
            sha256=document.sha256,
            media_type=document.media_type,
            chunk_count=document.chunk_count,
            error=ErrorView.of(document.error),
            pending=None
            if pending is None
            else PendingView(revision=pending.revision, status=pending.status, error=ErrorView.of(pending.error)),
            created_at=document.created_at,
            updated_at=document.updated_at,
        )


class DocumentList(Struct, frozen=True, kw_only=True, rename="camel"):
    """One page, newest first."""

    items: tuple[DocumentView, ...]
    next_cursor: str | None = None


class UploadedDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one file: `queued` with its job, `unchanged`, or `refused` with its problem."""

    source_name: str
    status: str
    id: UUID | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    job_id: UUID | UnsetType | None = UNSET
    problem: Problem | UnsetType = UNSET


class UploadAnswer(Struct, frozen=True, kw_only=True):
    """One entry a file, in the order in which they were stored."""

    documents: tuple[UploadedDocument, ...]


class Deleting(Struct, frozen=True, kw_only=True, rename="camel"):
    """No search finds it any more; what is left of it goes in the background."""

    id: UUID
    status: str = "deleting"
    job_id: UUID | UnsetType = UNSET


class ChunkView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A passage of the current revision. `text[contentStart:]` is the content, what is before it the section label.

    `spans` and `headingSpans` are half-open ranges of the normalised source, in characters.
    """

    chunk_id: UUID
    document_id: UUID
    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    section_depths: tuple[int, ...]
    page: int | None
    span: tuple[int, int] | None
    spans: tuple[tuple[int, int], ...]
    heading_spans: tuple[tuple[int, int], ...]
    weight: int
    chunk_strategy: str
    content_hash: str
    enabled: bool
    version: int

    @classmethod
    def of(cls, row: ChunkRow) -> "ChunkView":
        chunk = row.chunk
        return cls(
            chunk_id=row.id,
            document_id=row.document_id,
            chunk_index=chunk.index,
            text=chunk.text,
            content_start=chunk.content_start,
            section_path=chunk.section_path,
            section_depths=chunk.section_depths,
            page=chunk.page,
            span=chunk.span,
            spans=chunk.spans,
            heading_spans=chunk.heading_spans,
            weight=chunk.weight,
            chunk_strategy=chunk.strategy,
            content_hash=row.content_hash,
            enabled=row.enabled,
            version=row.version,
        )


class ChunkList(Struct, frozen=True, kw_only=True, rename="camel"):
    """One page, in the document's order."""

    items: tuple[ChunkView, ...]
    next_cursor: str | None = None

    @classmethod
    def page(cls, rows: Sequence[ChunkRow], *, start: int, limit: int) -> "ChunkList":
        """`limit` rows from the one at `start`."""
        end = start + limit
        items = tuple(ChunkView.of(row) for row in rows[start:end])
        return cls(items=items, next_cursor=str(end) if end < len(rows) else None)


class ProgressView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`done` of `total` chunks in this stage."""

    stage: str
    done: int
    total: int
    per_second: float


class JobView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job. `state` is one of queued, running, done, dead, cancelled."""

    id: UUID
    kind: str
    document_id: UUID
    state: str
    attempts: int
    progress: ProgressView | None
    error: ErrorView | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, job: Job) -> "JobView":
        progress = job.progress
        return cls(
            id=job.id,
            kind=job.kind.value,
            document_id=job.document_id,
            state=job.state.value,
            attempts=job.attempts,
            progress=None
            if progress is None
            else ProgressView(
                stage=progress.stage, done=progress.done, total=progress.total, per_second=progress.per_second
            ),
            error=ErrorView.of(job.error),
            created_at=job.created_at,
            updated_at=job.updated_at,
        )


class JobList(Struct, frozen=True, kw_only=True, rename="camel"):
    """The newest jobs."""

    items: tuple[JobView, ...]
    next_cursor: str | None = None


class BatchEntry(Struct, frozen=True, kw_only=True):
    """One search of a batch: its result, or the problem that it would have had alone."""

    status: int
    result: SearchResult | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True, kw_only=True):
    """Entries in the order of the searches."""

    results: tuple[BatchEntry, ...]


class SettingsView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Effective knobs with their layers, and the workspace's own row. `version` is what the ETag holds.

    `reindex` appears after a change that does not reach what is already indexed.
    """

    workspace_id: UUID
    version: int
    config: dict[str, KnobValue]
    overrides: dict[str, Any]
    warnings: tuple[KnobWarning, ...]
    reindex: "ReindexNote | UnsetType" = UNSET


class ReindexNote(Struct, frozen=True, kw_only=True):
    """Knobs whose change counts for new uploads only, and how many documents a re-index would touch."""

    knobs: tuple[str, ...]
    documents: int


class StoredCounts(Struct, frozen=True, kw_only=True):
    """What the workspace holds."""

    collections: int
    documents: int
    chunks: int
    bytes: int


class GenerationView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One embedding of everything."""

    id: UUID
    state: str
    embedder: str
    model: str
    dimension: int
    lexical_version: int
    index_name: str


class ModelsView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is loaded. The hash is that of the weights; empty when another service holds them."""

    embedder: str
    embedder_version: str
    dimension: int
    weights_sha256: str
    max_input_tokens: int | None
    reranker: str | None
    reranker_dialect: str | None


class IndexView(Struct, frozen=True, kw_only=True, rename="camel"):
    """The vector index."""

    engine: str
    points: int
    bytes_on_disk: int | None


class StatusView(Struct, frozen=True, kw_only=True, rename="camel"):
    """The service at a glance. `queue` counts jobs by state; `index` and `points` are null when it does not answer.

    When nothing is on its way, `points` is `counts.chunks`: one point a chunk.
    """

    version: str
    counts: StoredCounts
    points: int | None
    by_collection: tuple[CollectionView, ...]
    generations: tuple[GenerationView, ...]
    models: ModelsView
    queue: dict[str, int]
    index: IndexView | None


class Alive(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str = "alive"


class CheckView(Struct, frozen=True, kw_only=True):
    """One part of the service: `ok`, or `failed` with its error's code."""

    status: str
    error: str | None = None


class Readiness(Struct, frozen=True, kw_only=True):
    """`ready` when every part works. `checks` are for callers of this machine."""

    status: str
    checks: dict[str, CheckView] | UnsetType = UNSET
