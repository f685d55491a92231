"""Two doors to the same work: a running service by HTTP, or the embedded one in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from msgspec import UNSET, Struct

from app.bootstrap import Service, open_service
from app.clients.kroshka_api import ApiError, KroshkaApi, discover
from app.config.deployment import Deployment
from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import CollectionNotFound, KroshkaError, NameTaken
from app.domain.search import SearchOverrides, SearchQuery, SearchResult

READ_SIZE = 1 << 20


class Upload(Struct, frozen=True, kw_only=True):
    """What became of a file at the door: `queued`, `unchanged` or `refused` with its reason."""

    outcome: str
    document_id: str | None = None
    job_id: str | None = None
    reason: str | None = None


class JobView(Struct, frozen=True, kw_only=True):
    """A job as a progress bar needs it."""

    state: str
    stage: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None


class SearchWish(Struct, frozen=True, kw_only=True):
    """A search as the command line takes it; None leaves the service's own value."""

    text: str
    collection: str | None = None
    top_k: int | None = None
    min_score: float | None = None
    rerank: bool | None = None
    explain: bool = False


class Door(Protocol):
    """What the commands need of the service."""

    where: str

    async def ensure_collection(self, name: str, description: str = "") -> UUID: ...

    async def upload(self, collection_id: UUID, source_name: str, path: Path) -> Upload: ...

    async def job(self, job_id: str) -> JobView: ...

    async def chunk_count(self, document_id: str) -> int: ...

    async def search(self, wish: SearchWish) -> SearchResult: ...


class HttpDoor:
    """A running service."""

    def __init__(self, *, api: KroshkaApi, url: str) -> None:
        self._api, self.where = api, url

    async def ensure_collection(self, name: str, description: str = "") -> UUID:
        return await self._api.ensure_collection(name, description)

    async def upload(self, collection_id: UUID, source_name: str, path: Path) -> Upload:
        try:
            entry = await self._api.upload(collection_id, source_name, path)
        except ApiError as error:
            if error.status == 503:
                raise
            return Upload(outcome="refused", reason=str(error))
        problem = entry.get("problem")
        if problem is not None:
            return Upload(outcome="refused", reason=str(problem.get("detail") or problem.get("title")))
        return Upload(outcome=str(entry["status"]), document_id=entry["id"], job_id=entry.get("jobId"))

    async def job(self, job_id: str) -> JobView:
        entry = await self._api.job(job_id)
        progress, error = entry.get("progress") or {}, entry.get("error") or {}
        return JobView(
            state=entry["state"],
            stage=progress.get("stage", ""),
            done=progress.get("done", 0),
            total=progress.get("total", 0),
            error=error.get("message"),
        )

    async def chunk_count(self, document_id: str) -> int:
        return int((await self._api.document(document_id))["chunkCount"])

    async def search(self, wish: SearchWish) -> SearchResult:
        body: dict[str, Any] = {"query": wish.text, "explain": wish.explain}
        if wish.collection is not None:
            collection = await self._api.find_collection(wish.collection)
            if collection is None:
                raise CollectionNotFound(wish.collection)
            body["collectionIds"] = [str(collection)]
        optional = {"topK": wish.top_k, "minScore": wish.min_score, "rerank": wish.rerank}
        return await self._api.search(body | {name: value for name, value in optional.items() if value is not None})


class LocalDoor:
    """The embedded service in this process."""

    where = "in this process"

    def __init__(self, *, service: Service) -> None:
        self._service = service

    async def ensure_collection(self, name: str, description: str = "") -> UUID:
        catalog = self._service.catalog
        found = await catalog.find_collection(DEFAULT_WORKSPACE, name)
        if found is None:
            try:
                found = await catalog.create_collection(DEFAULT_WORKSPACE, name, description)
            except NameTaken:  # another process was faster
                found = await catalog.find_collection(DEFAULT_WORKSPACE, name)
        if found is None:
            raise CollectionNotFound(name)
        return found.id

    async def upload(self, collection_id: UUID, source_name: str, path: Path) -> Upload:
        try:
            accepted = await self._service.uploads.accept(
                _read(path),
                workspace_id=DEFAULT_WORKSPACE,
                collection_id=collection_id,
                source_name=source_name,
                media_type=None,
            )
        except KroshkaError as error:
            return Upload(outcome="refused", reason=str(error))
        job_id = str(accepted.job_id) if accepted.job_id else None
        return Upload(outcome=accepted.outcome, document_id=str(accepted.document_id), job_id=job_id)

    async def job(self, job_id: str) -> JobView:
        job = await self._service.queue.job(DEFAULT_WORKSPACE, UUID(job_id))
        progress = job.progress
        return JobView(
            state=job.state.value,
            stage=progress.stage if progress else "",
            done=progress.done if progress else 0,
            total=progress.total if progress else 0,
            error=job.error.message if job.error else None,
        )

    async def chunk_count(self, document_id: str) -> int:
        return (await self._service.catalog.document(DEFAULT_WORKSPACE, UUID(document_id))).chunk_count

    async def search(self, wish: SearchWish) -> SearchResult:
        collection_ids: tuple[UUID, ...] = ()
        if wish.collection is not None:
            collection = await self._service.catalog.find_collection(DEFAULT_WORKSPACE, wish.collection)
            if collection is None:
                raise CollectionNotFound(wish.collection)
            collection_ids = (collection.id,)
        overrides = SearchOverrides(
            top_k=UNSET if wish.top_k is None else wish.top_k,
            min_score=UNSET if wish.min_score is None else wish.min_score,
            rerank=UNSET if wish.rerank is None else wish.rerank,
        )
        return await self._service.search.search(
            SearchQuery(
                text=wish.text,
                workspace_id=DEFAULT_WORKSPACE,
                collection_ids=collection_ids,
                overrides=overrides,
                explain=wish.explain,
                door="page" if wish.explain else "tool",
            )
        )


async def _read(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as stream:
        while block := await asyncio.to_thread(stream.read, READ_SIZE):
            yield block


@asynccontextmanager
async def open_door(deployment: Deployment, *, url: str | None, key: str | None, worker: bool) -> AsyncIterator[Door]:
    """The service at `url`, else the one that runs on this data folder, else the embedded one in this process."""
    address = url or discover(deployment.data_dir)
    if address is not None:
        async with KroshkaApi.connect(address, key=key) as api:
            yield HttpDoor(api=api, url=address)
        return
    async with open_service(deployment, worker=worker) as service:
        yield LocalDoor(service=service)
