"""Accepting an upload: document, revision and job in one transaction."""

from typing import Any
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import Accepted, ChunkingOptions, NewDocument, RevisionState, Scopes
from app.domain.errors import CollectionNotFound, TooManyChunks
from app.domain.jobs import JobKind
from app.store.names import fold_name
from app.store.queueing import enqueue, live_job
from app.store.rows import AnyRow
from app.store.tables import collection, document, revision
from app.store.types import database_time

ENDED_BADLY = (RevisionState.FAILED.value, RevisionState.CANCELLED.value)


async def accept(connection: AsyncConnection, new: NewDocument, *, max_collection_chunks: int | None) -> Accepted:
    """See Catalog.accept. Lock order: collection, document, job."""
    await _lock_collection(connection, new)
    document_id = await _locked_document(connection, new) or await _new_document(connection, new)
    newest = await _newest_good_revision(connection, document_id)
    if newest is not None and _is_same(newest, new):
        return await _unchanged(connection, document_id, newest)
    if max_collection_chunks is not None:
        await _check_room(connection, new.collection_id, document_id, max_collection_chunks)
    return await _new_revision(connection, document_id, new)


async def _lock_collection(connection: AsyncConnection, new: NewDocument) -> None:
    # Shared: many uploads at once, but none while the collection is being deleted.
    statement = (
        select(collection.c.id)
        .where(
            collection.c.id == new.collection_id,
            collection.c.workspace_id == new.workspace_id,
            collection.c.deleted_at.is_(None),
        )
        .with_for_update(read=True)
    )
    if (await connection.execute(statement)).first() is None:
        raise CollectionNotFound(new.collection_id)


async def _locked_document(connection: AsyncConnection, new: NewDocument) -> UUID | None:
    """The live document of this name, its row locked and its metadata taken over."""
    statement = (
        select(document)
        .where(
            document.c.collection_id == new.collection_id,
            document.c.source_name == new.source_name,
            document.c.deleted_at.is_(None),
        )
        .with_for_update()
    )
    found = (await connection.execute(statement)).first()
    if found is None:
        return None
    changed = {name: value for name, value in _sent_metadata(new).items() if getattr(found, name) != value}
    if changed:
        values = {**changed, "version": document.c.version + 1, "updated_at": database_time()}
        await connection.execute(update(document).where(document.c.id == found.id).values(**values))
    return UUID(str(found.id))


def _sent_metadata(new: NewDocument) -> dict[str, Any]:
    """What came with the upload; what was not sent stays (an upload without scopes must not open a document)."""
    sent: dict[str, Any] = {}
    if new.description:
        sent["description"] = new.description
    if new.attributes:
        sent["attributes"] = new.attributes
    if new.scopes != Scopes():
        sent["scopes"] = msgspec.to_builtins(new.scopes)
    return sent


async def _new_document(connection: AsyncConnection, new: NewDocument) -> UUID:
    # Two uploads of one new name at once: the second meets the unique index and starts over.
    document_id = uuid4()
    values = {
        "id": document_id,
        "workspace_id": new.workspace_id,
        "collection_id": new.collection_id,
        "source_name": new.source_name,
        "source_name_folded": fold_name(new.source_name),
        "description": new.description,
        "attributes": new.attributes,
        "scopes": new.scopes,
        "version": 1,
        "created_at": database_time(),
        "updated_at": database_time(),
    }
    await connection.execute(insert(document).values(**values))
    return document_id


async def _newest_good_revision(connection: AsyncConnection, document_id: UUID) -> AnyRow | None:
    statement = (
        select(revision)
        .where(revision.c.document_id == document_id, revision.c.state.not_in(ENDED_BADLY))
        .order_by(revision.c.number.desc())
        .limit(1)
    )
    return (await connection.execute(statement)).first()


def _is_same(newest: AnyRow, new: NewDocument) -> bool:
    same_bytes = newest.sha256 == new.sha256 and newest.media_type == new.media_type
    return same_bytes and msgspec.convert(newest.chunking, ChunkingOptions) == new.chunking


async def _unchanged(connection: AsyncConnection, document_id: UUID, newest: AnyRow) -> Accepted:
    return Accepted(
        outcome="unchanged",
        document_id=document_id,
        revision_id=newest.id,
        revision=newest.number,
        job_id=await live_job(connection, JobKind.INGEST, newest.id),
    )


async def _check_room(connection: AsyncConnection, collection_id: UUID, document_id: UUID, limit: int) -> None:
    # The exact check is the pipeline's, when it knows the number of chunks; here at least one more is certain.
    held = (await connection.execute(chunks_held(collection_id, without_document=document_id))).scalar() or 0
    if held >= limit:
        raise TooManyChunks(actual=held + 1, limit=limit, scope="collection")


def chunks_held(collection_id: UUID, *, without_document: UUID) -> Any:
    """SELECT of the number of chunks in current revisions of the collection's other live documents."""
    return (
        select(func.coalesce(func.sum(revision.c.chunk_count), 0))
        .join(document, document.c.id == revision.c.document_id)
        .where(
            document.c.collection_id == collection_id,
            document.c.id != without_document,
            document.c.deleted_at.is_(None),
            *is_current(revision.c),
        )
    )


def is_current(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """The conditions of the partial unique index, for the revision table or an alias of it."""
    return columns.current_from.is_not(None), columns.current_until.is_(None)


async def _new_revision(connection: AsyncConnection, document_id: UUID, new: NewDocument) -> Accepted:
    highest = select(func.max(revision.c.number)).where(revision.c.document_id == document_id)
    number = ((await connection.execute(highest)).scalar() or 0) + 1
    values: dict[str, Any] = {
        "id": new.revision_id,
        "document_id": document_id,
        "number": number,
        "blob_key": str(new.revision_id),
        "sha256": new.sha256,
        "size_bytes": new.size_bytes,
        "media_type": new.media_type,
        "chunking": new.chunking,
        "state": RevisionState.QUEUED.value,
        "chunk_count": 0,
        "created_at": database_time(),
    }
    await connection.execute(insert(revision).values(**values))
    job_id = await enqueue(
        connection,
        JobKind.INGEST,
        workspace_id=new.workspace_id,
        document_id=document_id,
        revision_id=new.revision_id,
    )
    return Accepted(
        outcome="queued", document_id=document_id, revision_id=new.revision_id, revision=number, job_id=job_id
    )
