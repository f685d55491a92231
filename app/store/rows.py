"""Rows to the domain's structs and back."""

import hashlib
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row

from app.domain.documents import (
    Chunk,
    ChunkingOptions,
    ChunkRow,
    Document,
    Generation,
    PendingRevision,
    Revision,
    RevisionState,
    Scopes,
    StoredError,
    chunk_id,
)
from app.domain.jobs import Job, JobKind, JobProgress, JobState, Lease

AnyRow = Row[*tuple[Any, ...]]

PUBLIC_STATUS = {RevisionState.CHUNKED: "embedding", RevisionState.READY: "indexed"}
"""States whose name for people differs; the others are shown as they are."""


def public_status(state: str) -> str:
    """A revision's state as people see it."""
    return PUBLIC_STATUS.get(RevisionState(state), state)


def content_hash(content: str) -> str:
    """SHA-256 of a chunk's content, without its label: what carries a switched-off passage over to a new revision."""
    return hashlib.sha256(content.encode()).hexdigest()


def stored_error(value: Any) -> StoredError | None:
    return None if value is None else msgspec.convert(value, StoredError)


def chunk_values(chunk: Chunk, revision: Revision) -> dict[str, Any]:
    """Column values of a new chunk row."""
    return {
        "id": chunk_id(revision.document_id, revision.number, chunk.index),
        "revision_id": revision.id,
        "document_id": revision.document_id,
        "chunk_index": chunk.index,
        "label": chunk.text[: chunk.content_start],
        "content": chunk.content,
        "section_path": chunk.section_path,
        "section_depths": chunk.section_depths,
        "spans": chunk.spans,
        "heading_spans": chunk.heading_spans,
        "page": chunk.page,
        "weight": chunk.weight,
        "strategy": chunk.strategy,
        "content_hash": content_hash(chunk.content),
        "enabled": True,
        "edited": False,
        "version": 1,
    }


def chunk_row(row: AnyRow) -> ChunkRow:
    """From a row with all of the chunk table's columns."""
    return ChunkRow(
        id=row.id,
        document_id=row.document_id,
        revision_id=row.revision_id,
        chunk=_chunk(row),
        content_hash=row.content_hash,
        enabled=row.enabled,
        version=row.version,
    )


def _chunk(row: AnyRow) -> Chunk:
    return Chunk(
        index=row.chunk_index,
        text=row.label + row.content,
        content_start=len(row.label),
        section_path=tuple(row.section_path),
        section_depths=tuple(row.section_depths),
        spans=spans(row.spans),
        heading_spans=spans(row.heading_spans),
        page=row.page,
        weight=row.weight,
        strategy=row.strategy,
    )


def spans(value: list[list[int]]) -> tuple[tuple[int, int], ...]:
    """Stored pairs as tuples."""
    return tuple((start, end) for start, end in value)


def revision_of(row: AnyRow) -> Revision:
    """From a row of revision joined with its document."""
    return Revision(
        id=row.id,
        document_id=row.document_id,
        workspace_id=row.workspace_id,
        collection_id=row.collection_id,
        source_name=row.source_name,
        number=row.number,
        state=RevisionState(row.state),
        blob_key=row.blob_key,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        media_type=row.media_type,
        chunking=msgspec.convert(row.chunking, ChunkingOptions),
        chunk_count=row.chunk_count,
        is_current=row.current_from is not None and row.current_until is None,
        error=stored_error(row.error),
    )


def document_of(row: AnyRow) -> Document:
    """From a row of the listing statement (see listing.py): the document, what it shows, and its newest revision."""
    is_pending = row.current_id is not None and row.newest_number > row.shown_number
    pending = PendingRevision(row.newest_number, public_status(row.newest_state), stored_error(row.newest_error))
    return Document(
        id=row.id,
        workspace_id=row.workspace_id,
        collection_id=row.collection_id,
        source_name=row.source_name,
        description=row.description,
        attributes=row.attributes,
        scopes=msgspec.convert(row.scopes, Scopes),
        status=row.status,
        revision=row.shown_number,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        media_type=row.media_type,
        chunk_count=row.chunk_count,
        error=None if row.current_id is not None else stored_error(row.newest_error),
        pending=pending if is_pending else None,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def generation_of(row: AnyRow) -> Generation:
    """From a row of the generation table."""
    return Generation(
        id=row.id,
        embedder=row.embedder,
        model_key=row.model_key,
        dimension=row.dimension,
        lexical_version=row.lexical_version,
        index_name=row.index_name,
        state=row.state,
        average_length=row.average_length,
    )


def job_of(row: AnyRow) -> Job:
    """From a row of the job table."""
    return Job(
        id=row.id,
        kind=JobKind(row.kind),
        workspace_id=row.workspace_id,
        document_id=row.document_id,
        state=JobState(row.state),
        attempts=row.attempts,
        progress=None if row.progress is None else msgspec.convert(row.progress, JobProgress),
        error=stored_error(row.error),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def lease_of(row: AnyRow) -> Lease:
    """From a job row that was just claimed."""
    revision_id: UUID | None = row.revision_id
    return Lease(
        id=row.id,
        kind=JobKind(row.kind),
        workspace_id=row.workspace_id,
        document_id=row.document_id,
        revision_id=revision_id,
        worker=row.worker,
        attempt=row.attempts,
        failures=row.failures,
        wanted=row.wanted,
        payload=row.payload,
    )
