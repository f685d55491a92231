"""Statements that show documents and collections as people see them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, case, func, literal, select

from app.domain.documents import RevisionState
from app.store.accepting import is_current
from app.store.rows import PUBLIC_STATUS
from app.store.tables import collection, document, revision

current = revision.alias("current")
newest = revision.alias("newest")
_numbered = revision.alias("numbered")


def _status() -> Any:
    """The derived status: deleting, indexed, else how far the newest revision has come."""
    renamed = [(newest.c.state == state.value, literal(name)) for state, name in PUBLIC_STATUS.items()]
    return case(
        (document.c.deleted_at.is_not(None), literal("deleting")),
        (current.c.id.is_not(None), literal(PUBLIC_STATUS[RevisionState.READY])),
        *renamed,
        else_=newest.c.state,
    )


derived_status = _status()


def _shown(name: str) -> Any:
    # The current revision's value, or the newest one's while nothing is current.
    return func.coalesce(current.c[name], newest.c[name])


def documents() -> Select[*tuple[Any, ...]]:
    """Each document with its current and its newest revision; rows for `rows.document_of`."""
    highest = select(func.max(_numbered.c.number)).where(_numbered.c.document_id == document.c.id).scalar_subquery()
    return (
        select(
            document,
            derived_status.label("status"),
            current.c.id.label("current_id"),
            _shown("number").label("shown_number"),
            _shown("size_bytes").label("size_bytes"),
            _shown("sha256").label("sha256"),
            _shown("media_type").label("media_type"),
            _shown("chunk_count").label("chunk_count"),
            newest.c.number.label("newest_number"),
            newest.c.state.label("newest_state"),
            newest.c.error.label("newest_error"),
        )
        .select_from(document)
        .join(newest, and_(newest.c.document_id == document.c.id, newest.c.number == highest))
        .outerjoin(current, and_(current.c.document_id == document.c.id, *is_current(current.c)))
    )


def collections(workspace_id: UUID) -> Select[*tuple[Any, ...]]:
    """Live collections of a workspace."""
    return select(collection).where(collection.c.workspace_id == workspace_id, collection.c.deleted_at.is_(None))


def counts(collection_ids: list[UUID]) -> Select[*tuple[Any, ...]]:
    """Per collection: live documents, and chunks and bytes of their current revisions."""
    return (
        select(
            document.c.collection_id,
            func.count().label("documents"),
            func.coalesce(func.sum(current.c.chunk_count), 0).label("chunks"),
            func.coalesce(func.sum(current.c.size_bytes), 0).label("bytes"),
        )
        .select_from(document)
        .outerjoin(current, and_(current.c.document_id == document.c.id, *is_current(current.c)))
        .where(document.c.collection_id.in_(collection_ids), document.c.deleted_at.is_(None))
        .group_by(document.c.collection_id)
    )
