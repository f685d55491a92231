"""The whole service in this process over two TEI servers on real sockets: ingest, search, and what failing costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.bootstrap import Service, open_service
from app.config.deployment import Deployment
from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.jobs import JobState
from app.domain.search import SearchQuery, SearchResult
from tests.support.aio import run
from tests.support.tei_server import NOT_FOUND, UNAVAILABLE, TeiServer, reranker_server, serving

DOCUMENT = """# Насосы

## Пуск

Насос включают при открытом вентиле.

## Давление

Насос держит давление, пока открыт вентиль.

## Возврат

Возврат денег на карту занимает три дня.
"""
QUESTION = "насос давление вентиль"


@asynccontextmanager
async def service_over(folder: Path, embed: TeiServer, rerank: TeiServer) -> AsyncIterator[Service]:
    environ = {
        "KROSHKA_DATA": str(folder),
        "EMBEDDER": "tei",
        "TEI_EMBED_URL": embed.url,
        "RERANKER": "tei",
        "TEI_RERANK_URL": rerank.url,
    }
    async with open_service(Deployment.from_environ(environ), worker=True, environ=environ) as service:
        yield service


async def ingest(service: Service) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield DOCUMENT.encode()

    collection = await service.catalog.create_collection(DEFAULT_WORKSPACE, "c")
    accepted = await service.uploads.accept(
        stream(), workspace_id=DEFAULT_WORKSPACE, collection_id=collection.id, source_name="насосы.md"
    )
    service.wake.set()
    assert accepted.job_id is not None
    for _ in range(1_000):
        if (await service.queue.job(DEFAULT_WORKSPACE, accepted.job_id)).state is JobState.DONE:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the job does not end")


async def search(service: Service, text: str = QUESTION) -> SearchResult:
    return await service.search.search(SearchQuery(text=text, workspace_id=DEFAULT_WORKSPACE))


def causes(result: SearchResult) -> list[tuple[str, str]]:
    return [(item.stage, item.cause) for item in result.degraded]


def test_documents_go_in_and_reranked_passages_come_out(tmp_path: Path) -> None:
    async def story(embed: TeiServer, rerank: TeiServer) -> None:
        async with service_over(tmp_path, embed, rerank) as service:
            await ingest(service)
            result = await search(service)
        assert result.hits[0].section_path == ("Насосы", "Давление")
        assert result.hits[0].reranked
        assert result.hits[0].relevance is not None
        assert (result.reranker.dialect, result.degraded) == ("tei", ()) if result.reranker else False

    with serving(TeiServer()) as embed, serving(reranker_server()) as rerank:
        run(story(embed, rerank))
        assert {"/info", "/embed"} <= {received.path for received in embed.received}
        assert "/rerank" in {received.path for received in rerank.received}


def test_a_server_of_the_other_dialect_is_found_by_its_404(tmp_path: Path) -> None:
    async def story(embed: TeiServer, rerank: TeiServer) -> None:
        async with service_over(tmp_path, embed, rerank) as service:
            await ingest(service)
            result = await search(service)
        assert result.reranker is not None
        assert result.hits[0].reranked

    server = reranker_server()
    server.rerank_routes = {"/v1/rerank": "documents"}
    server.wrapped = True
    with serving(TeiServer()) as embed, serving(server) as rerank:
        rerank.always("/rerank", NOT_FOUND)
        run(story(embed, rerank))


def test_a_helper_that_fails_costs_its_part_and_never_the_search(tmp_path: Path) -> None:
    async def story(embed: TeiServer, rerank: TeiServer) -> None:
        async with service_over(tmp_path, embed, rerank) as service:
            await ingest(service)
            rerank.always("/rerank", UNAVAILABLE)
            without_reranker = await search(service)
            embed.always("/embed", UNAVAILABLE)
            with_words_alone = await search(service, "возврат денег")
        assert without_reranker.hits
        assert causes(without_reranker) == [("rerank", "status_5xx")]
        assert with_words_alone.hits[0].section_path == ("Насосы", "Возврат")
        assert [stage for stage, _ in causes(with_words_alone)] == ["embed", "rerank"]

    with serving(TeiServer()) as embed, serving(reranker_server()) as rerank:
        run(story(embed, rerank))
