"""The worker of a process, and what it does with each kind of job."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Protocol

import structlog

from app.bootstrap.models import Models
from app.config.deployment import Deployment
from app.config.service import ConfigService
from app.domain.jobs import JobKind
from app.domain.ports import BlobStore, JobQueue, RevisionStore, VectorIndex
from app.ingestion.chunking import chunk
from app.ingestion.filling import IndexFiller
from app.ingestion.parsers import parse
from app.ingestion.pipeline import IngestionPipeline
from app.ingestion.removal import DeletePipeline, PurgePipeline, Sweeper
from app.jobs.identity import WorkerIdentity
from app.jobs.worker import JobHandler, JobResult, Worker
from app.observability.ingestions import IngestObserver
from app.observability.metrics import Metrics
from app.text.lexical import document_vector

WORKER_GRACE_S = 5.0
RESTART_AFTER_S = 1.0


class WorkingParts(Protocol):
    """What a worker needs of the service."""

    @property
    def deployment(self) -> Deployment: ...
    @property
    def queue(self) -> JobQueue: ...
    @property
    def revisions(self) -> RevisionStore: ...
    @property
    def blobs(self) -> BlobStore: ...
    @property
    def config(self) -> ConfigService: ...
    @property
    def index(self) -> VectorIndex: ...
    @property
    def models(self) -> Models: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def wake(self) -> asyncio.Event: ...


@asynccontextmanager
async def working(service: WorkingParts) -> AsyncIterator[None]:
    """A worker beside the doors; running jobs get a moment to end, then they go back to the queue."""
    worker = Worker(
        queue=service.queue,
        handlers=_handlers(service),
        identity=WorkerIdentity.here(),
        wake=service.wake,
        on_result=lambda result: _count(service.metrics, result),
    )
    supervisor = asyncio.create_task(_supervise(worker))
    try:
        yield
    finally:
        await worker.stop(grace_s=WORKER_GRACE_S)
        done, _ = await asyncio.wait({supervisor}, timeout=WORKER_GRACE_S)
        if not done:
            supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await supervisor


async def _supervise(worker: Worker) -> None:
    """A worker that fell over an error nobody foresaw is started again: searches go on meanwhile."""
    while True:
        try:
            return await worker.run()
        except Exception as error:  # noqa: BLE001  # logged, and the jobs must go on
            structlog.get_logger("kroshka.jobs").error("worker_failed", exc_info=error)
            await asyncio.sleep(RESTART_AFTER_S)


def _count(metrics: Metrics, result: JobResult) -> None:
    """Ingests are counted with their figures by their own observer."""
    if result.kind is not JobKind.INGEST:
        metrics.job_finished(result.kind.value, result.result)


def _handlers(service: WorkingParts) -> dict[JobKind, JobHandler]:
    models = service.models
    filler = IndexFiller(
        revisions=service.revisions,
        index=service.index,
        embedder=models.embedder,
        token_vectors=models.token_vectors,
        lexical_vector=document_vector,
    )
    ingest = IngestionPipeline(
        revisions=service.revisions,
        queue=service.queue,
        blobs=service.blobs,
        filler=filler,
        parse=parse,
        chunk=chunk,
        token_counter=models.token_counter,
        configuration=service.config,
        purge_after=timedelta(seconds=2 * service.deployment.max_search_timeout_s),
        observer=IngestObserver(metrics=service.metrics),
    )
    return {JobKind.INGEST: ingest, **_removal(service)}


def _removal(service: WorkingParts) -> dict[JobKind, JobHandler]:
    revisions, queue, blobs = service.revisions, service.queue, service.blobs
    sweeper = Sweeper(queue=queue, index=service.index, token_vectors=service.models.token_vectors)
    return {
        JobKind.PURGE: PurgePipeline(revisions=revisions, queue=queue, blobs=blobs, sweeper=sweeper),
        JobKind.DELETE: DeletePipeline(revisions=revisions, queue=queue, blobs=blobs, sweeper=sweeper),
    }
