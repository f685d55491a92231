"""`/v1/search` and its batch: what reaches the pipeline, and the shape of the answer."""

from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest
from msgspec import UNSET

from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import IndexUnavailable
from app.domain.search import Degradation, Hit, KnobValue, Ranks, RerankerInfo, Scores, SearchOverrides, SearchResult
from tests.support.aio import run
from tests.support.api import open_api

ROUTES = ("/v1/search", "/_api/knowledge/search")
HIT = Hit(
    chunk_id=UUID(int=1),
    document_id=UUID(int=2),
    collection_id=UUID(int=3),
    source_name="Регламент.md",
    chunk_index=3,
    text="[Section: 2]\n\nТекст",
    content_start=14,
    section_path=("Регламент", "2"),
    page=None,
    span=(1204, 1877),
    relevance=0.97,
    relevance_source="bge-reranker-v2-m3/sigmoid-1",
    reranked=True,
    scores=Scores(cosine=0.71, lexical=8.2, fused=0.0325, rerank=0.9991),
    ranks=Ranks(dense=2, lexical=1, fused=1),
)
RESULT = SearchResult(
    outcome="hits",
    hits=(HIT,),
    degraded=(Degradation(stage="rerank", cause="timeout", after_ms=1500),),
    notes=("query_cut",),
    reranker=RerankerInfo(dialect="tei", model="BAAI/bge-reranker-v2-m3"),
    timings_ms={"embed": 14.1, "total": 57.6},
)


@pytest.mark.parametrize("route", ROUTES)
def test_the_answer_has_the_shape_that_clients_know(tmp_path: Path, route: str) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.search.result = RESULT
            answer = await api.json("POST", route, json={"query": "сбой"})
            assert answer == {
                "outcome": "hits",
                "hits": [
                    {
                        "chunkId": str(UUID(int=1)),
                        "documentId": str(UUID(int=2)),
                        "collectionId": str(UUID(int=3)),
                        "sourceName": "Регламент.md",
                        "chunkIndex": 3,
                        "text": "[Section: 2]\n\nТекст",
                        "contentStart": 14,
                        "sectionPath": ["Регламент", "2"],
                        "page": None,
                        "span": [1204, 1877],
                        "relevance": 0.97,
                        "relevanceSource": "bge-reranker-v2-m3/sigmoid-1",
                        "reranked": True,
                        "scores": {"cosine": 0.71, "lexical": 8.2, "fused": 0.0325, "rerank": 0.9991},
                        "ranks": {"dense": 2, "lexical": 1, "fused": 1},
                    }
                ],
                "degraded": [{"stage": "rerank", "cause": "timeout", "afterMs": 1500.0}],
                "notes": ["query_cut"],
                "reranker": {"dialect": "tei", "model": "BAAI/bge-reranker-v2-m3"},
                "timingsMs": {"embed": 14.1, "total": 57.6},
            }

    run(scenario())


def test_explanations_are_there_only_when_the_pipeline_gave_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            knobs = {"searchTopK": KnobValue(value=8, layer="default")}
            api.search.result = msgspec.structs.replace(RESULT, config=knobs, before_rerank=(HIT,))
            answer = await api.json("POST", "/v1/search", json={"query": "сбой", "explain": True})
            assert answer["config"] == {"searchTopK": {"value": 8, "layer": "default"}}
            assert [hit["chunkId"] for hit in answer["beforeRerank"]] == [str(UUID(int=1))]
            assert api.search.queries[0].explain is True

    run(scenario())


def test_what_is_left_out_stays_with_the_layers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.json("POST", "/v1/search", json={"query": " сбой "})
            query = api.search.queries[0]
            assert (query.text, query.workspace_id, query.collection_ids) == (" сбой ", DEFAULT_WORKSPACE, ())
            assert query.overrides == SearchOverrides()
            assert (query.overrides.top_k, query.timeout_ms, query.door) == (UNSET, None, "http")

    run(scenario())


def test_every_knob_of_a_request_reaches_the_pipeline(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            body = {
                "query": "сбой",
                "collectionIds": [api.collection_id],
                "topK": 4,
                "minScore": None,
                "rerank": False,
                "lexical": False,
                "timeoutMs": 3000,
                "maxTokens": 900,
            }
            await api.json("POST", "/v1/search", json=body)
            query = api.search.queries[0]
            assert query.collection_ids == (api.world.collection.id,)
            assert query.overrides == SearchOverrides(top_k=4, min_score=None, rerank=False, lexical=False)
            assert (query.timeout_ms, query.max_tokens) == (3000, 900)

    run(scenario())


@pytest.mark.parametrize("route", ROUTES)
def test_one_collection_may_be_named_as_the_first_clients_do(tmp_path: Path, route: str) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            own = api.collection_id
            await api.json("POST", route, json={"query": "сбой", "collectionId": own, "topK": 3})
            assert api.search.queries[0].collection_ids == (UUID(own),)
            both = {"query": "сбой", "collectionId": own, "collectionIds": [own]}
            problem = await api.problem("POST", route, 422, json=both)
            assert problem["errors"][0]["pointer"] == "/collectionId"

    run(scenario())


def test_a_search_in_a_collection_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.search.known_collections, missing = set(), str(uuid4())
            problem = await api.problem("POST", "/v1/search", 404, json={"query": "a", "collectionIds": [missing]})
            assert missing in problem["detail"]

    run(scenario())


def test_a_batch_is_answered_in_its_order_and_one_failure_stays_in_its_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.search.result, api.search.known_collections = RESULT, set()
            searches = [{"query": "one"}, {"query": "two", "collectionId": str(uuid4())}, {"query": "three"}]
            answer = await api.json("POST", "/v1/search/batch", json={"searches": searches})
            assert [entry["status"] for entry in answer["results"]] == [200, 404, 200]
            assert answer["results"][0]["result"]["hits"][0]["chunkIndex"] == 3
            assert answer["results"][1]["problem"]["type"] == "urn:kroshka:problem:not_found"
            assert {query.text for query in api.search.queries} == {"one", "two", "three"}

    run(scenario())


def test_a_batch_while_the_index_is_away_has_the_problem_in_every_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.search.result = IndexUnavailable("the index is away", cause="refused")
            answer = await api.json("POST", "/v1/search/batch", json={"searches": [{"query": "a"}] * 32})
            assert [entry["status"] for entry in answer["results"]] == [503] * 32

    run(scenario())
