"""The HTTP surface over the real catalog, queue, settings and uploads; blobs in memory, searches prepared."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import uvicorn
from msgspec import Struct, structs

from app.api import create_app
from app.api.asgi import App
from app.api.services import Models, Probe, Services
from app.config.deployment import Deployment
from app.config.service import ConfigService
from app.domain.deadline import Deadline
from app.domain.errors import CollectionNotFound, StoreUnavailable
from app.domain.index import IndexStatus
from app.domain.search import RerankerInfo, SearchQuery, SearchResult
from app.domain.vectors import EmbeddingModel
from app.ingestion.uploads import Uploads
from app.observability.metrics import BuildInfo, Metrics
from app.store.settings_rows import SqlSettingsRows
from tests.support.store import World, open_world

MODEL = EmbeddingModel(
    name="multilingual-e5-small", version="q4", dimension=384, max_input_tokens=512, weights_sha256="ab12"
)
LOCALHOST = "http://localhost"


class MemoryBlobs:
    """Originals in memory. As with the real stores, an aborted stream leaves nothing.

    `arrived` is set with the first block of any original, `aborted` when one breaks off. With `breaks_after_blocks`
    a stream that is read fails after so many.
    """

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.arrived, self.aborted = asyncio.Event(), asyncio.Event()
        self.breaks_after_blocks: int | None = None

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        collected = bytearray()
        try:
            async for block in chunks:
                collected += block
                self.arrived.set()
        except BaseException:
            self.aborted.set()
            raise
        self.contents[key] = bytes(collected)
        return len(collected)

    async def read(self, key: str) -> bytes:
        if key not in self.contents:
            raise StoreUnavailable(f"blob {key} is missing", cause="missing")
        return self.contents[key]

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        content = await self.read(key)
        for number, start in enumerate(range(0, len(content), 4)):
            if number == self.breaks_after_blocks:
                raise StoreUnavailable(f"blob {key} broke off", cause="reset")
            yield content[start : start + 4]

    async def delete(self, key: str) -> None:
        self.contents.pop(key, None)


class PreparedSearch:
    """Answers with what a test prepared, and keeps what it was asked."""

    def __init__(self) -> None:
        self.result: SearchResult | Exception = SearchResult(outcome="no_results", timings_ms={"total": 1.0})
        self.queries: list[SearchQuery] = []
        self.known_collections: set[UUID] | None = None

    async def search(self, query: SearchQuery) -> SearchResult:
        self.queries.append(query)
        if self.known_collections is not None:
            for collection_id in query.collection_ids:
                if collection_id not in self.known_collections:
                    raise CollectionNotFound(collection_id)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class PreparedIndex:
    """A vector index of which only the figures are asked."""

    def __init__(self) -> None:
        self.answer: IndexStatus | Exception = IndexStatus(engine="edge", points=2, bytes_on_disk=4096)

    async def status(self, deadline: Deadline) -> IndexStatus:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Api(Struct, frozen=True, kw_only=True):
    """A running application, a client of it, and the parts behind it."""

    app: App
    client: httpx.AsyncClient
    services: Services
    world: World
    blobs: MemoryBlobs
    search: PreparedSearch
    index: PreparedIndex

    @property
    def collection_id(self) -> str:
        return str(self.world.collection.id)

    async def json(self, method: str, path: str, *, status: int = 200, **arguments: Any) -> Any:
        """The answer's body; the test fails when the status is another."""
        response = await self.client.request(method, path, **arguments)
        assert response.status_code == status, f"{response.status_code}: {response.text}"
        return response.json()

    async def problem(self, method: str, path: str, status: int, **arguments: Any) -> dict[str, Any]:
        """A problem of this status; the test fails on anything else."""
        response = await self.client.request(method, path, **arguments)
        assert response.status_code == status, f"{response.status_code}: {response.text}"
        assert response.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = response.json()
        assert problem["status"] == status
        return problem

    async def upload(
        self, name: str = "Регламент.md", content: bytes = "# Сбой\n\nТекст".encode(), **fields: Any
    ) -> Any:
        """Uploads one file; returns its entry."""
        answer = await self.json(
            "POST",
            "/v1/documents",
            status=202,
            data={"collectionId": self.collection_id, **fields},
            files={"file": (name, content, "text/markdown")},
        )
        return answer["documents"][0]


def client_of(app: App, *, base_url: str = LOCALHOST, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    """A client whose connection seems to come from `peer`."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(peer, 50_000))
    return httpx.AsyncClient(transport=transport, base_url=base_url)


class _QuietServer(uvicorn.Server):
    """Leaves the signals of the test process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[int]:
    """The application behind a real socket, as `kroshka serve` runs it; gives the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _QuietServer(
        uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=5)
    )
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await running
        listener.close()


@asynccontextmanager
async def open_api(
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    probes: Mapping[str, Probe] | None = None,
    max_upload_bytes: int = 1_000,
) -> AsyncIterator[Api]:
    """The application over a fresh database in `folder`."""
    given = {"KROSHKA_DATA": str(folder), "MAX_UPLOAD_BYTES": str(max_upload_bytes), **(environ or {})}
    async with open_world(f"sqlite:///{folder}/kroshka.db") as world:
        blobs, search, index = MemoryBlobs(), PreparedSearch(), PreparedIndex()
        services = _services(world, blobs, search, index, given, probes or {})
        app = create_app(services)
        async with client_of(app) as client:
            yield Api(app=app, client=client, services=services, world=world, blobs=blobs, search=search, index=index)


def _services(
    world: World,
    blobs: MemoryBlobs,
    search: PreparedSearch,
    index: PreparedIndex,
    environ: Mapping[str, str],
    probes: Mapping[str, Probe],
) -> Services:
    deployment = structs.replace(Deployment.from_environ(environ))
    metrics = Metrics(build=BuildInfo(version="0", engine="edge", embedder="e5", reranker="none"))
    config = ConfigService(
        rows=SqlSettingsRows(database=world.database),
        environ=environ,
        surroundings=deployment.surroundings(MODEL),
        observer=metrics.config_loaded,
    )
    uploads = Uploads(
        catalog=world.catalog,
        blobs=blobs,
        configuration=config,
        model=MODEL,
        max_bytes=deployment.max_upload_bytes,
    )
    return Services(
        catalog=world.catalog,
        uploads=uploads,
        queue=world.queue,
        search=search,
        config=config,
        blobs=blobs,
        index=index,
        generations=world.revisions,
        models=Models(embedder=MODEL, reranker=RerankerInfo(dialect="local", model="late")),
        metrics=metrics,
        deployment=deployment,
        probes=probes,
    )
