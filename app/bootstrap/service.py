"""The whole service in one process: opened, wired, and closed in the opposite order."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from app import __version__
from app.bootstrap.models import Models, load_models
from app.bootstrap.working import working
from app.clients.blobs import ObjectBlobStore
from app.clients.embedded_index.index import EmbeddedVectorIndex
from app.config.deployment import Deployment
from app.config.service import ConfigService
from app.domain.deadline import Deadline
from app.domain.documents import DEFAULT_WORKSPACE, Generation
from app.domain.errors import ConfigurationError
from app.domain.ports import VectorIndex
from app.domain.vectors import EmbeddingModel
from app.ingestion.chunking import STRATEGIES
from app.ingestion.uploads import Uploads
from app.observability.metrics import BuildInfo, Metrics
from app.observability.searches import SearchObserver
from app.retrieval.pipeline import SearchPipeline
from app.retrieval.singleflight import QueryVectorCache
from app.store.catalog import SqlCatalog
from app.store.database import Database
from app.store.generations import SqlGenerations
from app.store.jobs import SqlJobQueue
from app.store.revisions import SqlRevisionStore
from app.store.search_catalog import SqlSearchCatalog
from app.store.settings_rows import SqlSettingsRows
from app.text.lexical import AVERAGE_LENGTH, LEXICAL_VERSION

if TYPE_CHECKING:
    from app.api.services import Services

PROBE_WAIT_S = 2.0


class Service(Struct, frozen=True, kw_only=True):
    """Everything that the doors use. `wake` is set by whoever queues a job in this process."""

    deployment: Deployment
    database: Database
    catalog: SqlCatalog
    queue: SqlJobQueue
    revisions: SqlRevisionStore
    blobs: ObjectBlobStore
    config: ConfigService
    index: VectorIndex
    models: Models
    metrics: Metrics
    uploads: Uploads
    search: SearchPipeline
    generation: Generation
    wake: asyncio.Event

    @property
    def model(self) -> EmbeddingModel:
        return self.models.embedder.model

    def for_api(self) -> "Services":
        """As the HTTP surface takes it."""
        from app.api.services import Models as ApiModels
        from app.api.services import Services

        return Services(
            catalog=self.catalog,
            uploads=self.uploads,
            queue=self.queue,
            search=self.search,
            config=self.config,
            blobs=self.blobs,
            index=self.index,
            generations=self.revisions,
            models=ApiModels(embedder=self.model, reranker=self.models.info),
            metrics=self.metrics,
            deployment=self.deployment,
            probes={
                "database": lambda: self.config.row(None),
                "index": lambda: self.index.status(Deadline.after(PROBE_WAIT_S)),
                "embedder": lambda: self.models.embedder.embed_query("ready?", Deadline.after(PROBE_WAIT_S)),
            },
        )


@asynccontextmanager
async def open_service(
    deployment: Deployment, *, worker: bool, environ: Mapping[str, str] | None = None, vector_cache: int = 512
) -> AsyncIterator[Service]:
    """Database, models and index are opened at once; with `worker` jobs are worked on until the end.

    `vector_cache` is the number of query vectors that are kept.

    Raises ConfigurationError (ModelUnavailable, ModelMismatch) or Unavailable; then nothing stays open.
    """
    _check_supported(deployment)
    deployment.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        metrics = Metrics(data_dir=deployment.data_dir)
        database, models = await _open_both(deployment, metrics, stack)
        metrics.describe_build(_build_info(models))
        generation = await _generation(deployment, database, models)
        index = EmbeddedVectorIndex(
            deployment.data_dir / "index" / generation.index_name, dimension=generation.dimension
        )
        stack.push_async_callback(index.aclose)
        await index.ensure_schema()
        environ = dict(os.environ) if environ is None else environ
        service = _wire(deployment, database, models, metrics, generation, index, environ, vector_cache)
        if worker:
            await stack.enter_async_context(working(service))
        yield service


def _check_supported(deployment: Deployment) -> None:
    if deployment.qdrant_url is not None:
        raise ConfigurationError("QDRANT_URL: this version has the embedded engine only; unset it")


async def _open_both(deployment: Deployment, metrics: Metrics, stack: AsyncExitStack) -> tuple[Database, Models]:
    """A failure of one lets the other finish first: a half-opened part could not be closed."""

    async def open_database() -> Database:
        database = await Database.open(deployment.database_url)
        stack.push_async_callback(database.aclose)
        return database

    opening, loading = (
        asyncio.create_task(open_database()),
        asyncio.create_task(load_models(deployment, metrics, stack)),
    )
    await asyncio.wait((opening, loading))
    errors = [error for error in (opening.exception(), loading.exception()) if error is not None]
    if errors:
        raise errors[0]
    return opening.result(), loading.result()


async def _generation(deployment: Deployment, database: Database, models: Models) -> Generation:
    model = models.embedder.model
    await SqlCatalog(database=database).ensure_workspace(DEFAULT_WORKSPACE, "default")
    return await SqlGenerations(database=database).ensure_generation(
        embedder=deployment.embedder,
        model_key=model.key,
        dimension=model.dimension,
        lexical_version=LEXICAL_VERSION,
        average_length=AVERAGE_LENGTH,
    )


def _wire(
    deployment: Deployment,
    database: Database,
    models: Models,
    metrics: Metrics,
    generation: Generation,
    index: VectorIndex,
    environ: Mapping[str, str],
    vector_cache: int,
) -> Service:
    wake, model = asyncio.Event(), models.embedder.model
    catalog = SqlCatalog(database=database, on_job=wake.set)
    blobs = ObjectBlobStore(url=deployment.blob_url)
    config = ConfigService(
        rows=SqlSettingsRows(database=database),
        environ=environ,
        surroundings=deployment.surroundings(model, chunk_strategies=tuple(STRATEGIES)),
        observer=metrics.config_loaded,
    )
    return Service(
        deployment=deployment,
        database=database,
        catalog=catalog,
        queue=SqlJobQueue(database=database),
        revisions=SqlRevisionStore(database=database),
        blobs=blobs,
        config=config,
        index=index,
        models=models,
        metrics=metrics,
        uploads=Uploads(
            catalog=catalog, blobs=blobs, configuration=config, model=model, max_bytes=deployment.max_upload_bytes
        ),
        search=_search(deployment, database, models, index, config, metrics, vector_cache),
        generation=generation,
        wake=wake,
    )


def _search(
    deployment: Deployment,
    database: Database,
    models: Models,
    index: VectorIndex,
    config: ConfigService,
    metrics: Metrics,
    vector_cache: int,
) -> SearchPipeline:
    return SearchPipeline(
        catalog=SqlSearchCatalog(database=database),
        index=index,
        model=models.embedder.model,
        vectors=QueryVectorCache(embedder=models.embedder, capacity=vector_cache),
        configuration=config,
        rerankers=models.rerankers,
        token_counter=models.token_counter,
        max_timeout_s=deployment.max_search_timeout_s,
        observer=SearchObserver(metrics=metrics),
    )


def _build_info(models: Models) -> BuildInfo:
    return BuildInfo(
        version=__version__,
        engine="qdrant-edge",
        embedder=models.embedder.model.name,
        reranker=models.info.dialect if models.info else "none",
    )
