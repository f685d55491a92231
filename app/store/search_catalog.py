"""The reads of a search: what was true when it began, which candidates are visible, and their texts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import BindParameter, Select, and_, bindparam, func, or_, select

from app.domain.errors import CollectionNotFound, ConfigurationError, WorkspaceNotFound
from app.domain.search import Passage, SearchScope, SearchSnapshot, VisibleChunk
from app.store.accepting import is_current
from app.store.database import Database
from app.store.generations import IS_ACTIVE
from app.store.rows import AnyRow, spans
from app.store.tables import chunk, collection, document, generation, revision, workspace


class SqlSearchCatalog:
    """The SearchCatalog port; its reads have threads (or connections) of their own."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        # Built once: a statement's construction costs as much as its execution.
        self._visible, self._passages = _visible(), _passages()
        self._everywhere, self._in_collections = _snapshot(in_collections=False), _snapshot(in_collections=True)

    async def snapshot(self, scope: SearchScope) -> SearchSnapshot:
        """One statement. Raises WorkspaceNotFound, CollectionNotFound, or ConfigurationError without a generation."""
        wanted = list(dict.fromkeys(scope.collection_ids))
        statement = self._in_collections if wanted else self._everywhere
        parameters: dict[str, Any] = {"workspace": scope.workspace_id} | ({"collections": wanted} if wanted else {})
        rows = await self._database.fetch_for_search(statement, parameters)
        if not rows:
            raise WorkspaceNotFound(scope.workspace_id)
        if wanted and rows[0].known_collections != len(wanted):
            raise CollectionNotFound(await self._first_missing(scope.workspace_id, wanted))
        return _snapshot_of(rows[0])

    async def visible(self, chunk_ids: Sequence[UUID], snapshot: SearchSnapshot) -> list[VisibleChunk]:
        """Those that were current at the snapshot's epoch, are enabled, and whose document is not deleted."""
        if not chunk_ids:
            return []
        parameters = {"ids": list(chunk_ids), "epoch": snapshot.epoch}
        rows = await self._database.fetch_for_search(self._visible, parameters)
        return [VisibleChunk(chunk_id=row.id, document_id=row.document_id, chunk_index=row.chunk_index) for row in rows]

    async def passages(self, chunk_ids: Sequence[UUID]) -> dict[UUID, Passage]:
        """Texts and places by chunk id; chunks that are gone are left out."""
        if not chunk_ids:
            return {}
        rows = await self._database.fetch_for_search(self._passages, {"ids": list(chunk_ids)})
        return {row.id: _passage_of(row) for row in rows}

    async def _first_missing(self, workspace_id: UUID, wanted: list[UUID]) -> UUID:
        statement = select(collection.c.id).where(
            collection.c.workspace_id == workspace_id, collection.c.deleted_at.is_(None), collection.c.id.in_(wanted)
        )
        known = {row.id for row in await self._database.fetch_for_search(statement)}
        return next((one for one in wanted if one not in known), wanted[0])


def _ids() -> BindParameter[Any]:
    return bindparam("ids", expanding=True)


def _snapshot(*, in_collections: bool) -> Select[*tuple[Any, ...]]:
    """Epoch, active generation, how many of the wanted collections exist, and whether any document is current."""
    wanted: BindParameter[Any] = bindparam("collections", expanding=True)
    here = workspace.c.id
    known = select(func.count()).select_from(collection).correlate(workspace)
    known = known.where(collection.c.workspace_id == here, collection.c.deleted_at.is_(None))
    has_documents = (
        select(document.c.id)
        .join(collection, collection.c.id == document.c.collection_id)
        .join(revision, and_(revision.c.document_id == document.c.id, *is_current(revision.c)))
        .where(document.c.workspace_id == here, document.c.deleted_at.is_(None), collection.c.deleted_at.is_(None))
        .correlate(workspace)
    )
    if in_collections:
        known = known.where(collection.c.id.in_(wanted))
        has_documents = has_documents.where(document.c.collection_id.in_(wanted))
    return (
        select(
            workspace.c.epoch,
            generation.c.id.label("generation_id"),
            generation.c.model_key,
            generation.c.index_name,
            generation.c.lexical_version,
            known.scalar_subquery().label("known_collections"),
            has_documents.exists().label("has_documents"),
        )
        .select_from(workspace.outerjoin(generation, IS_ACTIVE))
        .where(workspace.c.id == bindparam("workspace"))
    )


def _visible() -> Select[*tuple[Any, ...]]:
    # Ids only, every condition in SQL: the cheapest form that was measured.
    epoch: BindParameter[int] = bindparam("epoch")
    at_the_time = and_(
        revision.c.current_from <= epoch, or_(revision.c.current_until.is_(None), revision.c.current_until > epoch)
    )
    return (
        select(chunk.c.id, chunk.c.document_id, chunk.c.chunk_index)
        .join(revision, revision.c.id == chunk.c.revision_id)
        .join(document, document.c.id == revision.c.document_id)
        .join(collection, collection.c.id == document.c.collection_id)
        .where(
            chunk.c.id.in_(_ids()),
            chunk.c.enabled,
            at_the_time,
            document.c.deleted_at.is_(None),
            collection.c.deleted_at.is_(None),
        )
    )


def _passages() -> Select[*tuple[Any, ...]]:
    return (
        select(
            chunk.c.id,
            chunk.c.document_id,
            document.c.collection_id,
            document.c.source_name,
            chunk.c.chunk_index,
            chunk.c.label,
            chunk.c.content,
            chunk.c.section_path,
            chunk.c.page,
            chunk.c.spans,
            chunk.c.heading_spans,
        )
        .join(document, document.c.id == chunk.c.document_id)
        .where(chunk.c.id.in_(_ids()))
    )


def _snapshot_of(row: AnyRow) -> SearchSnapshot:
    if row.generation_id is None:
        raise ConfigurationError("no embedding generation is active yet: start the service once to create it")
    return SearchSnapshot(
        epoch=row.epoch,
        generation_id=row.generation_id,
        model_key=row.model_key,
        index_name=row.index_name,
        lexical_version=row.lexical_version,
        has_documents=bool(row.has_documents),
    )


def _passage_of(row: AnyRow) -> Passage:
    covered = spans(row.spans)
    headings = spans(row.heading_spans)
    return Passage(
        chunk_id=row.id,
        document_id=row.document_id,
        collection_id=row.collection_id,
        source_name=row.source_name,
        chunk_index=row.chunk_index,
        text=row.label + row.content,
        content_start=len(row.label),
        section_path=tuple(row.section_path),
        page=row.page,
        span=(covered[0][0], covered[-1][1]) if covered else (headings[0] if headings else None),
    )
