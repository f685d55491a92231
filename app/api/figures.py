"""What is stored, counted for the status page and the metrics."""

from uuid import UUID

from app.api.services import Services
from app.domain.deadline import Deadline
from app.domain.documents import DEFAULT_WORKSPACE, Collection
from app.domain.errors import KroshkaError
from app.domain.index import IndexStatus
from app.domain.ports import Catalog
from app.observability.metrics import StoredFigures

PAGE = 200
INDEX_WAIT_S = 2.0


async def all_collections(catalog: Catalog, workspace_id: UUID) -> list[Collection]:
    """Every collection of the workspace, by name."""
    found: list[Collection] = []
    cursor: str | None = None
    while True:
        page = await catalog.collections(workspace_id, limit=PAGE, cursor=cursor)
        found.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def index_status(services: Services) -> IndexStatus | None:
    """None when the index does not answer in time."""
    try:
        return await services.index.status(Deadline.after(INDEX_WAIT_S))
    except (KroshkaError, TimeoutError):
        return None


async def stored_figures(services: Services) -> StoredFigures:
    """For the metrics' gauges. Raises StoreUnavailable."""
    collections = await all_collections(services.catalog, DEFAULT_WORKSPACE)
    index = await index_status(services)
    return StoredFigures(
        jobs=await services.queue.counts(),
        documents=sum(collection.documents for collection in collections),
        chunks=sum(collection.chunks for collection in collections),
        index_points=index.points if index else 0,
        index_bytes=index.bytes_on_disk if index else None,
    )
