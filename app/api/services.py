"""What the HTTP surface works with. `bootstrap` builds it; tests build their own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from app.config.deployment import Deployment
from app.config.service import ConfigService
from app.domain.deadline import Deadline
from app.domain.documents import Accepted, Generation, Scopes
from app.domain.index import IndexStatus
from app.domain.ports import BlobStore, Catalog, JobQueue
from app.domain.search import RerankerInfo, SearchQuery, SearchResult
from app.domain.vectors import EmbeddingModel
from app.observability.metrics import Metrics

Probe = Callable[[], Awaitable[object]]
"""Asks a part of the service whether it works; raises when it does not."""


class Search(Protocol):
    """The retrieval pipeline."""

    async def search(self, query: SearchQuery) -> SearchResult:
        """Raises CollectionNotFound, InvalidInput, IndexUnavailable."""


class Uploads(Protocol):
    """The way of one file from its bytes to a queued job."""

    async def accept(
        self,
        stream: AsyncIterator[bytes],
        *,
        workspace_id: UUID,
        collection_id: UUID,
        source_name: str,
        media_type: str | None,
        description: str = "",
        attributes: dict[str, Any] | None = None,
        scopes: Scopes = Scopes(),  # noqa: B008 (frozen)
    ) -> Accepted:
        """Raises LimitExceeded, UnsupportedFormat, CollectionNotFound, TooManyChunks, StoreUnavailable."""


class Index(Protocol):
    """How much the vector index holds."""

    async def status(self, deadline: Deadline) -> IndexStatus: ...


class Generations(Protocol):
    """The embeddings that are written to."""

    async def generations(self) -> list[Generation]: ...


class Models(Struct, frozen=True, kw_only=True):
    """Which models are loaded. `reranker` None means that there is none."""

    embedder: EmbeddingModel
    reranker: RerankerInfo | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """`probes` are asked by `/health/ready`, by name (`database`, `index`, `embedder`, …)."""

    catalog: Catalog
    uploads: Uploads
    queue: JobQueue
    search: Search
    config: ConfigService
    blobs: BlobStore
    index: Index
    generations: Generations
    models: Models
    metrics: Metrics
    deployment: Deployment
    probes: Mapping[str, Probe] = field(default_factory=dict)
