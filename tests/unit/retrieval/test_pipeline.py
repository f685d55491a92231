"""A search from text to hits: what it finds, and what it does when a helper is missing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
import pytest
from msgspec import UNSET, structs

from app.config.knobs import RagConfig
from app.config.layers import ResolvedConfig
from app.domain.deadline import Deadline
from app.domain.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidInput,
    ModelMismatch,
    RerankerUnavailable,
)
from app.domain.index import IndexAnswer, IndexQuery
from app.domain.ports import RerankCandidate, Reranker, RerankQuery, RerankScores
from app.domain.search import (
    Passage,
    SearchOverrides,
    SearchQuery,
    SearchResult,
    SearchScope,
    SearchSnapshot,
    VisibleChunk,
)
from app.domain.vectors import EmbeddingModel, PassageVectors, QueryVectors, SparseVector
from app.retrieval.pipeline import SearchPipeline, SearchReport
from app.retrieval.rerankers import RerankerChoice, Rerankers
from app.retrieval.singleflight import QueryVectorCache
from app.text.lexical import document_vector
from tests.support.aio import run
from tests.support.vector_index import COLLECTION, DOCUMENT, WORKSPACE, MemoryVectorIndex, point, unit

MODEL = EmbeddingModel(name="test", version="1", dimension=4)
TEXTS = {
    1: "Сервер перезапускают ночью",
    2: "Жалобу регистрируют в течение часа",
    3: "Modem CDATA-XPON ONU has one port",
    4: "Сервер жалоб",
}
DIRECTIONS = {1: unit(1, 0, 0, 0), 2: unit(0, 1, 0, 0), 3: unit(0, 0, 1, 0), 4: unit(1, 0.2, 0, 0)}


class Bench:
    """The pipeline over four chunks in memory; parts may be made to fail, or chunks be hidden."""

    def __init__(self, reranker: Reranker | None = None, **knobs: Any) -> None:
        self.index: Any = MemoryVectorIndex(dimension=4)
        self.embedder, self.catalog = Embedder(), Catalog()
        self.reports: list[SearchReport] = []
        self._reranker, self._knobs = reranker, knobs
        self.rewire()

    def rewire(self) -> None:
        """After a part was replaced."""
        self.pipeline = SearchPipeline(
            catalog=self.catalog,
            index=self.index,
            model=MODEL,
            vectors=QueryVectorCache(embedder=self.embedder),
            configuration=Configuration(structs.replace(RagConfig(), **self._knobs)),
            rerankers=Rerankers(own=RerankerChoice(self._reranker) if self._reranker else None),
            observer=self.reports.append,
        )

    def search(self, text: str, *, towards: int = 1, **options: Any) -> SearchResult:
        """A query whose vector is that of chunk `towards`."""

        async def work() -> SearchResult:
            await self.index.upsert([point_of(number) for number in TEXTS], Deadline.after(5))
            self.embedder.vector = DIRECTIONS[towards]
            overrides = SearchOverrides(**options.pop("overrides", {}))
            query = SearchQuery(text=text, workspace_id=WORKSPACE, overrides=overrides, **options)
            return await self.pipeline.search(query)

        return run(work())


def point_of(number: int) -> Any:
    words = document_vector("файл.md", ("Раздел",), TEXTS[number], average_length=10.0)
    return point(number, DIRECTIONS[number], words)


class Embedder:
    """Gives the vector that the test wants, or its error."""

    model = MODEL

    def __init__(self) -> None:
        self.vector = DIRECTIONS[1]
        self.error: Exception | None = None
        self.calls = 0

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        self.calls += 1
        if self.error:
            raise self.error
        return QueryVectors(dense=self.vector)

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        return PassageVectors(dense=np.zeros((len(texts), 4), dtype=np.float32))

    async def aclose(self) -> None: ...


class Catalog:
    """All chunks are of one document; `hidden` ones are of a revision that is over."""

    def __init__(self) -> None:
        self.hidden: set[int] = set()
        self.has_documents, self.model_key = True, MODEL.key
        self.asked: list[int] = []

    async def snapshot(self, scope: SearchScope) -> SearchSnapshot:
        return SearchSnapshot(
            epoch=1,
            generation_id=UUID(int=9),
            model_key=self.model_key,
            index_name="index",
            lexical_version=1,
            has_documents=self.has_documents,
        )

    async def visible(self, chunk_ids: Sequence[UUID], snapshot: SearchSnapshot) -> list[VisibleChunk]:
        self.asked.append(len(chunk_ids))
        return [
            VisibleChunk(chunk_id=one, document_id=DOCUMENT, chunk_index=one.int)
            for one in chunk_ids
            if one.int not in self.hidden
        ]

    async def passages(self, chunk_ids: Sequence[UUID]) -> dict[UUID, Passage]:
        return {one: passage(one.int) for one in chunk_ids}


def passage(number: int) -> Passage:
    return Passage(
        chunk_id=UUID(int=number),
        document_id=DOCUMENT,
        collection_id=COLLECTION,
        source_name="файл.md",
        chunk_index=number,
        text=f"Раздел\n\n{TEXTS.get(number, 'иное')}",
        content_start=8,
        section_path=("Раздел",),
        page=None,
        span=None,
    )


class Configuration:
    def __init__(self, config: RagConfig) -> None:
        self._config = config

    async def resolve(self, workspace_id: UUID) -> ResolvedConfig:
        return ResolvedConfig(config=self._config, layers=dict.fromkeys(self._config.__struct_fields__, "default"))


class Scorer:
    """Scores by chunk number; raises its error instead, after `wait_s`."""

    def __init__(
        self, scores: Mapping[int, float] | None = None, *, error: Exception | None = None, wait_s: float = 0.0
    ) -> None:
        self._scores, self._error, self._wait_s = scores or {}, error, wait_s
        self.seen: list[RerankCandidate] = []

    async def rank(self, query: RerankQuery, candidates: Sequence[RerankCandidate], deadline: Deadline) -> RerankScores:
        self.seen = list(candidates)
        async with asyncio.timeout(deadline.remaining_s()):
            await asyncio.sleep(self._wait_s)
        if self._error:
            raise self._error
        scores = tuple(self._scores.get(candidate.chunk_id.int) for candidate in candidates)
        return RerankScores(scores=scores, dialect="test", model="scorer", relevance_scale="raw")

    async def aclose(self) -> None: ...


def numbers(result: SearchResult) -> list[int]:
    return [hit.chunk_id.int for hit in result.hits]


def causes(result: SearchResult) -> list[tuple[str, str]]:
    return [(item.stage, item.cause) for item in result.degraded]


def test_hits_carry_their_breadcrumb_and_every_score_and_rank() -> None:
    bench = Bench()
    result = bench.search("сервер")
    first = result.hits[0]
    assert (result.outcome, first.source_name, first.section_path) == ("hits", "файл.md", ("Раздел",))
    assert first.scores.cosine == pytest.approx(1.0, abs=1e-3)
    assert first.scores.lexical is not None
    assert (first.ranks.dense, first.ranks.fused) == (1, 1)
    assert {"gate", "embed", "search", "fuse", "total"} <= set(result.timings_ms)
    assert not result.degraded


def test_a_reranker_decides_the_order_and_sees_the_content() -> None:
    scorer = Scorer({1: 0.1, 4: 0.2, 2: 0.9})
    result = Bench(scorer).search("сервер")
    assert numbers(result)[:3] == [2, 4, 1]
    assert all(hit.reranked for hit in result.hits[:3])
    assert TEXTS[1] in {candidate.text.rpartition("\n")[2] for candidate in scorer.seen}


@pytest.mark.parametrize(
    ("scorer", "cause"),
    [
        (Scorer(error=RerankerUnavailable("down", cause="refused")), "refused"),
        (Scorer(error=RerankerUnavailable("nonsense", cause="bad_answer")), "bad_answer"),
        (Scorer(error=RerankerUnavailable("open", cause="circuit_open")), "circuit_open"),
        (Scorer(wait_s=30.0), "timeout"),
    ],
)
def test_a_reranker_that_fails_costs_the_reranking_and_not_the_search(scorer: Scorer, cause: str) -> None:
    plain = Bench().search("сервер")
    result = Bench(scorer, rerank_timeout_ms=50).search("сервер", overrides={"top_k": 8})
    assert numbers(result) == numbers(plain)
    assert causes(result) == [("rerank", cause)]
    assert not any(hit.reranked for hit in result.hits)


def test_without_an_embedder_words_alone_are_searched_and_the_floor_is_not_applied() -> None:
    bench = Bench(min_score=0.5)
    bench.embedder.error = EmbedderUnavailable("down", cause="refused")
    result = bench.search("сервер")
    assert numbers(result) == [4, 1]
    assert causes(result) == [("embed", "refused")]
    assert "floor_not_applied" in result.notes


def test_without_embedder_and_words_there_is_an_error() -> None:
    bench = Bench()
    bench.embedder.error = EmbedderUnavailable("down", cause="refused")
    with pytest.raises(EmbedderUnavailable):
        bench.search("сервер", overrides={"lexical": False})


def test_an_index_that_is_away_is_the_one_failure_of_a_search() -> None:
    bench = Bench()

    async def away(query: IndexQuery, deadline: Deadline) -> IndexAnswer:
        raise IndexUnavailable("away", cause="refused")

    bench.index.search = away
    with pytest.raises(IndexUnavailable):
        bench.search("сервер")
    assert [report.outcome for report in bench.reports] == ["unavailable"]


def test_an_accidental_word_in_common_gives_no_credit() -> None:
    # One of three terms: a question in another language that shares a product's name.
    result = Bench().search("сколько портов имеет устройство ONU", towards=2)
    assert numbers(result)[0] == 2
    assert all(hit.scores.lexical is None for hit in result.hits)


def test_by_words_alone_any_word_in_common_is_better_than_nothing() -> None:
    result = Bench().search("сколько портов имеет устройство ONU", overrides={"dense": False})
    assert numbers(result) == [3]


def test_a_query_of_which_no_word_is_known_says_so() -> None:
    assert "lexical_blind" in Bench().search("quantum chromodynamics").notes


def test_the_floor_keeps_what_is_near_and_what_holds_every_word() -> None:
    result = Bench(min_score=0.9).search("CDATA-XPON", towards=1)
    assert set(numbers(result)) == {1, 3, 4}


def test_a_requests_own_floor_is_stronger_and_may_find_nothing() -> None:
    result = Bench().search("неизвестное слово", overrides={"min_score": 1.0}, towards=4)
    assert set(numbers(result)) <= {4}
    nothing = Bench(min_score=0.99).search("слово", overrides={"lexical": False, "min_score": 1.0}, towards=2)
    assert nothing.outcome in {"hits", "no_results"}


@pytest.mark.parametrize(
    ("text", "outcome"), [("", "no_query"), ("   ", "no_query"), ("ab", "query_too_short"), ("  a ", "query_too_short")]
)
def test_what_is_no_question_is_answered_before_anything_is_called(text: str, outcome: str) -> None:
    bench = Bench()
    assert bench.search(text).outcome == outcome
    assert (bench.embedder.calls, bench.catalog.asked) == (0, [])


def test_one_han_character_is_a_question() -> None:
    assert Bench().search("检").outcome == "hits"


def test_an_empty_scope_is_an_outcome_and_embeds_nothing() -> None:
    bench = Bench()
    bench.catalog.has_documents = False
    assert bench.search("сервер").outcome == "no_documents"
    assert bench.embedder.calls == 0


def test_an_index_of_another_model_is_refused() -> None:
    bench = Bench()
    bench.catalog.model_key = "other@1/4"
    with pytest.raises(ModelMismatch, match="other@1/4"):
        bench.search("сервер")


def test_hidden_chunks_are_never_hits_and_their_places_are_filled() -> None:
    bench = Bench(search_top_k=1)
    bench.catalog.hidden = {1, 4}
    result = bench.search("сервер", overrides={"top_k": 1})
    assert not {1, 4} & set(numbers(result))


def test_a_search_that_was_emptied_looks_deeper_once() -> None:
    class Shallow(MemoryVectorIndex):
        """Remembers how deep it was asked to look."""

        limits: ClassVar[list[int]] = []

        async def search(self, query: IndexQuery, deadline: Deadline) -> IndexAnswer:
            self.limits.append(query.limit)
            return await super().search(query, deadline)

    bench = Bench(search_top_k=1)
    bench.index = Shallow(dimension=4)
    bench.rewire()
    bench.catalog.hidden = {1, 2, 3, 4}
    fillers = [point(number, DIRECTIONS[1], SparseVector((), ())) for number in range(100, 140)]
    run(bench.index.upsert(fillers, Deadline.after(5)))
    bench.catalog.hidden |= set(range(100, 138))
    result = bench.search("слово", overrides={"top_k": 10, "lexical": False})
    assert set(numbers(result)) == {138, 139}
    assert bench.index.limits == [40, 160]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"overrides": {"top_k": 0}}, "/topK"),
        ({"overrides": {"top_k": 201}}, "/topK"),
        ({"overrides": {"min_score": 1.5}}, "/minScore"),
        ({"overrides": {"dense": False, "lexical": False}}, "/overrides"),
        ({"timeout_ms": 0}, "/timeoutMs"),
        ({"max_tokens": 0}, "/maxTokens"),
    ],
)
def test_a_wrong_request_names_its_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Bench().search("сервер", **options)
    assert caught.value.pointer == field


def test_explain_tells_the_configuration_and_the_order_before_reranking() -> None:
    result = Bench(Scorer({2: 1.0})).search("сервер", explain=True)
    assert result.config is not UNSET
    assert result.config["searchTopK"].layer == "default"
    assert result.before_rerank is not UNSET
    assert result.before_rerank[0].chunk_id.int in {1, 4}
    assert numbers(result)[0] == 2


def test_equal_questions_at_once_are_embedded_once() -> None:
    bench = Bench()

    async def work() -> list[SearchResult]:
        await bench.index.upsert([point_of(number) for number in TEXTS], Deadline.after(5))
        query = SearchQuery(text="сервер", workspace_id=WORKSPACE)
        return list(await asyncio.gather(*(bench.pipeline.search(query) for _ in range(8))))

    results = run(work())
    assert bench.embedder.calls == 1
    assert len({tuple(numbers(result)) for result in results}) == 1


def test_every_search_is_reported_once_with_its_outcome() -> None:
    bench = Bench(Scorer(error=RerankerUnavailable("down", cause="refused")))
    bench.search("сервер")
    (report,) = bench.reports
    assert (report.outcome, report.degraded, report.reranked) == ("hits", [("rerank", "refused")], False)


def test_the_budget_keeps_the_first_hit_and_what_still_fits() -> None:
    sizes = [len(Bench().search("сервер", max_tokens=tokens).hits) for tokens in (1, 10_000, None)]
    assert sizes == [1, 4, 4]
