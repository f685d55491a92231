"""Collections and documents in the metadata database."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import and_, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import Accepted, ChunkRow, Collection, Document, NewDocument, Revision
from app.domain.errors import CollectionNotFound, DocumentNotFound, NameTaken, WorkspaceNotFound
from app.domain.ports import CollectionPage, DocumentPage
from app.store import accepting, deletion, listing
from app.store.accepting import is_current
from app.store.cursors import checked_limit, decode_cursor, encode_cursor
from app.store.database import Database
from app.store.names import MAX_COLLECTION_NAME, MAX_SOURCE_NAME, checked_name, fold_name, like_pattern
from app.store.rows import AnyRow, chunk_row, document_of, revision_of
from app.store.tables import chunk, collection, document, revision, workspace
from app.store.types import database_time


class SqlCatalog:
    """The Catalog port. `on_job` is called after a commit that queued a job, to wake this process's worker."""

    def __init__(self, *, database: Database, on_job: Callable[[], None] = lambda: None) -> None:
        self._database, self._on_job = database, on_job

    async def ensure_workspace(self, workspace_id: UUID, name: str) -> None:
        """Creates the workspace if there is none of this id."""
        await self._database.write(partial(_ensure_workspace, workspace_id=workspace_id, name=name))

    async def create_collection(self, workspace_id: UUID, name: str, description: str = "") -> Collection:
        """Raises NameTaken, WorkspaceNotFound, or InvalidInput for the name."""
        clean = checked_name("/name", name, limit=MAX_COLLECTION_NAME)
        created = await self._database.write(
            partial(_create_collection, workspace_id=workspace_id, name=clean, description=description)
        )
        return _collection_of(created, None)

    async def collection(self, workspace_id: UUID, collection_id: UUID) -> Collection:
        """Raises CollectionNotFound."""
        statement = listing.collections(workspace_id).where(collection.c.id == collection_id)
        found = await self._with_counts(list(await self._database.fetch(statement)))
        if not found:
            raise CollectionNotFound(collection_id)
        return found[0]

    async def check_collection(self, workspace_id: UUID, collection_id: UUID) -> None:
        """Raises CollectionNotFound; cheaper than `collection`, which counts."""
        this = collection.c.id == collection_id
        if not await self._database.fetch(listing.collections(workspace_id).where(this)):
            raise CollectionNotFound(collection_id)

    async def find_collection(self, workspace_id: UUID, name: str) -> Collection | None:
        """By name, without regard to case or Unicode form."""
        statement = listing.collections(workspace_id).where(collection.c.name_folded == fold_name(name.strip()))
        found = await self._with_counts(list(await self._database.fetch(statement)))
        return found[0] if found else None

    async def collections(self, workspace_id: UUID, *, limit: int, cursor: str | None = None) -> CollectionPage:
        """By name. Raises InvalidInput for a limit outside 1–200 or a foreign cursor."""
        name = collection.c.name_folded
        statement = listing.collections(workspace_id).order_by(name).limit(checked_limit(limit) + 1)
        if cursor is not None:
            statement = statement.where(name > decode_cursor(cursor, tuple[str])[0])
        rows = list(await self._database.fetch(statement))
        more = len(rows) > limit
        items = await self._with_counts(rows[:limit])
        return CollectionPage(
            items=tuple(items), next_cursor=encode_cursor((rows[limit - 1].name_folded,)) if more else None
        )

    async def delete_collection(self, workspace_id: UUID, collection_id: UUID) -> None:
        """Invisible from now on; a delete job for each document. Raises CollectionNotFound."""
        delete = partial(deletion.delete_collection, workspace_id=workspace_id, collection_id=collection_id)
        if await self._database.write(delete):
            self._on_job()

    async def accept(self, new: NewDocument, *, max_collection_chunks: int | None = None) -> Accepted:
        """Raises CollectionNotFound, TooManyChunks, or InvalidInput for the name."""
        clean = checked_name("/sourceName", new.source_name, limit=MAX_SOURCE_NAME)
        checked = msgspec.structs.replace(new, source_name=clean)
        accepted = await self._database.write(
            partial(accepting.accept, new=checked, max_collection_chunks=max_collection_chunks)
        )
        if accepted.job_id is not None:
            self._on_job()
        return accepted

    async def document(self, workspace_id: UUID, document_id: UUID) -> Document:
        """Also while it is `deleting`. Raises DocumentNotFound."""
        this = (document.c.id == document_id, document.c.workspace_id == workspace_id)
        rows = await self._database.fetch(listing.documents().where(*this))
        if not rows:
            raise DocumentNotFound(document_id)
        return document_of(rows[0])

    async def original(self, workspace_id: UUID, document_id: UUID) -> Revision:
        """The current revision, or the newest while none is current. Raises DocumentNotFound, also when deleted."""
        columns = (revision, document.c.workspace_id, document.c.collection_id, document.c.source_name)
        this = (document.c.id == document_id, document.c.workspace_id == workspace_id, document.c.deleted_at.is_(None))
        current_first = (and_(*is_current(revision.c)).desc(), revision.c.number.desc())
        statement = select(*columns).join(document, document.c.id == revision.c.document_id).where(*this)
        rows = await self._database.fetch(statement.order_by(*current_first).limit(1))
        if not rows:
            raise DocumentNotFound(document_id)
        return revision_of(rows[0])

    async def documents(
        self,
        workspace_id: UUID,
        *,
        collection_id: UUID | None = None,
        name_contains: str | None = None,
        status: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> DocumentPage:
        """Newest first. Raises CollectionNotFound, or InvalidInput for the limit or the cursor."""
        statement = listing.documents().where(document.c.workspace_id == workspace_id)
        if collection_id is not None:
            await self.check_collection(workspace_id, collection_id)
            statement = statement.where(document.c.collection_id == collection_id)
        if name_contains:
            matches = document.c.source_name_folded.like(like_pattern(name_contains), escape="\\")
            statement = statement.where(matches)
        if status is not None:
            statement = statement.where(listing.derived_status == status)
        place = tuple_(document.c.created_at, document.c.id)
        if cursor is not None:
            statement = statement.where(place < decode_cursor(cursor, tuple[datetime, UUID]))
        order = (document.c.created_at.desc(), document.c.id.desc())
        rows = await self._database.fetch(statement.order_by(*order).limit(checked_limit(limit) + 1))
        items = tuple(document_of(row) for row in rows[:limit])
        more = len(rows) > limit
        return DocumentPage(
            items=items, next_cursor=encode_cursor((items[-1].created_at, items[-1].id)) if more else None
        )

    async def delete_document(self, workspace_id: UUID, document_id: UUID) -> UUID:
        """Invisible from now on; returns the delete job's id. Raises DocumentNotFound."""
        delete = partial(deletion.delete_document, workspace_id=workspace_id, document_id=document_id)
        job_id = await self._database.write(delete)
        self._on_job()
        return job_id

    async def chunks(self, workspace_id: UUID, document_id: UUID) -> list[ChunkRow]:
        """Chunks of the current revision in order; empty while nothing is current. Raises DocumentNotFound."""
        await self.document(workspace_id, document_id)
        statement = (
            select(chunk)
            .join(revision, revision.c.id == chunk.c.revision_id)
            .where(revision.c.document_id == document_id, *is_current(revision.c))
            .order_by(chunk.c.chunk_index)
        )
        return [chunk_row(row) for row in await self._database.fetch(statement)]

    async def _with_counts(self, rows: list[AnyRow]) -> list[Collection]:
        if not rows:
            return []
        counted = await self._database.fetch(listing.counts([row.id for row in rows]))
        by_id = {row.collection_id: row for row in counted}
        return [_collection_of(row, by_id.get(row.id)) for row in rows]


def _collection_of(row: AnyRow, counted: AnyRow | None) -> Collection:
    return Collection(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        description=row.description,
        created_at=row.created_at,
        documents=counted.documents if counted else 0,
        chunks=counted.chunks if counted else 0,
        bytes=counted.bytes if counted else 0,
    )


async def _ensure_workspace(connection: AsyncConnection, workspace_id: UUID, name: str) -> None:
    if (await connection.execute(select(workspace.c.id).where(workspace.c.id == workspace_id))).first() is None:
        values = {"id": workspace_id, "name": name, "epoch": 0, "created_at": database_time()}
        await connection.execute(insert(workspace).values(**values))


async def _create_collection(connection: AsyncConnection, workspace_id: UUID, name: str, description: str) -> AnyRow:
    known = select(workspace.c.id).where(workspace.c.id == workspace_id)
    if (await connection.execute(known)).first() is None:
        raise WorkspaceNotFound(workspace_id)
    folded = fold_name(name)
    taken = listing.collections(workspace_id).where(collection.c.name_folded == folded)
    if (await connection.execute(taken)).first() is not None:
        raise NameTaken("collection", name)
    values = {
        "id": uuid4(),
        "workspace_id": workspace_id,
        "name": name,
        "name_folded": folded,
        "description": description,
        "created_at": database_time(),
    }
    return (await connection.execute(insert(collection).values(**values).returning(*collection.c))).one()
