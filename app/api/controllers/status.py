"""`GET /v1/status`."""

from collections import Counter

from litestar import get
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app import __version__
from app.api.access import SEARCH
from app.api.figures import all_collections, index_status
from app.api.openapi import problems
from app.api.services import Models, Services
from app.api.views import CollectionView, GenerationView, IndexView, ModelsView, StatusView, StoredCounts
from app.domain.documents import DEFAULT_WORKSPACE, Collection, Generation
from app.domain.index import IndexStatus


@get("/v1/status", operation_id="getStatus", opt={"scope": SEARCH}, responses=problems(), tags=["status"])
async def status(services: NamedDependency[SkipValidation[Services]]) -> StatusView:
    """What is stored, which generation and models serve it, and what waits to be done."""
    collections = await all_collections(services.catalog, DEFAULT_WORKSPACE)
    queue: Counter[str] = Counter()
    for (_, state), count in (await services.queue.counts()).items():
        queue[state] += count
    index = await index_status(services)
    return StatusView(
        version=__version__,
        counts=_counts(collections),
        points=None if index is None else index.points,
        by_collection=tuple(CollectionView.of(collection) for collection in collections),
        generations=tuple(_generation(item) for item in await services.generations.generations()),
        models=_models(services.models),
        queue=dict(queue),
        index=_index(index),
    )


def _counts(collections: list[Collection]) -> StoredCounts:
    return StoredCounts(
        collections=len(collections),
        documents=sum(collection.documents for collection in collections),
        chunks=sum(collection.chunks for collection in collections),
        bytes=sum(collection.bytes for collection in collections),
    )


def _generation(generation: Generation) -> GenerationView:
    return GenerationView(
        id=generation.id,
        state=generation.state,
        embedder=generation.embedder,
        model=generation.model_key,
        dimension=generation.dimension,
        lexical_version=generation.lexical_version,
        index_name=generation.index_name,
    )


def _models(models: Models) -> ModelsView:
    embedder, reranker = models.embedder, models.reranker
    return ModelsView(
        embedder=embedder.name,
        embedder_version=embedder.version,
        dimension=embedder.dimension,
        weights_sha256=embedder.weights_sha256,
        max_input_tokens=embedder.max_input_tokens,
        reranker=None if reranker is None else reranker.model,
        reranker_dialect=None if reranker is None else reranker.dialect,
    )


def _index(index: IndexStatus | None) -> IndexView | None:
    if index is None:
        return None
    return IndexView(engine=index.engine, points=index.points, bytes_on_disk=index.bytes_on_disk)
