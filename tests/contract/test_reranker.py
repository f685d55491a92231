"""What every Reranker promises, run on each of them.

To add one: a factory below, an async context manager that gives a Reranker inside the test's event loop. The candidates
and their token vectors are the same for all: `TEXTS`, with a token vector for each word.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from app.clients.hash_embedder import fnv1a_32
from app.clients.late_interaction import LateInteractionReranker
from app.clients.rerank import HttpReranker
from app.clients.token_vectors import SqliteTokenVectorStore
from app.domain.deadline import Deadline
from app.domain.errors import RerankerUnavailable
from app.domain.ports import RerankCandidate, Reranker, RerankQuery, RerankScores
from app.domain.vectors import FloatArray, QueryVectors, TokenMatrix
from tests.support.aio import run
from tests.support.tei_server import TeiServer, reranker_server, serving

RerankerFactory = Callable[[Path], AbstractAsyncContextManager[Reranker]]
Check = Callable[[Callable[[Reranker], Awaitable[None]]], None]

QUERY = "насос давление вентиль"
TEXTS = (
    "возврат денег на карту",
    "насос включают при открытом вентиле",
    "насос держит давление пока открыт вентиль",
    "давление в котле",
)
BEST = 2
DIMENSION = 512


def word_vectors(text: str) -> FloatArray:
    """A direction of its own for each word, shape (words, DIMENSION)."""
    rows = np.zeros((len(text.split()), DIMENSION), np.float32)
    for row, word in zip(rows, text.split(), strict=True):
        row[fnv1a_32(word.encode()) % DIMENSION] = 1.0
    return rows


def token_matrix(text: str) -> TokenMatrix:
    return (word_vectors(text) * 127).astype(np.int8)


def candidates(texts: Sequence[str] = TEXTS) -> list[RerankCandidate]:
    return [
        RerankCandidate(chunk_id=UUID(int=n + 1), text=text, fused=0.01, cosine=0.5, lexical=None)
        for n, text in enumerate(texts)
    ]


def question() -> RerankQuery:
    tokens = word_vectors(QUERY)
    return RerankQuery(text=QUERY, vectors=QueryVectors(dense=tokens.mean(axis=0), tokens=tokens))


@asynccontextmanager
async def _http(server: TeiServer) -> AsyncIterator[Reranker]:
    with serving(server):
        reranker = HttpReranker(url=server.url, api_key=None)
        try:
            yield reranker
        finally:
            await reranker.aclose()


def tei(folder: Path) -> AbstractAsyncContextManager[Reranker]:
    return _http(reranker_server(max_client_batch_size=3))


def v1_results(folder: Path) -> AbstractAsyncContextManager[Reranker]:
    return _http(reranker_server(rerank_routes={"/v1/rerank": "documents"}, wrapped=True, serves_info=False))


def llama_cpp(folder: Path) -> AbstractAsyncContextManager[Reranker]:
    return _http(reranker_server(logits=True, serves_info=False))


@asynccontextmanager
async def late_interaction(folder: Path) -> AsyncIterator[Reranker]:
    store = SqliteTokenVectorStore(folder / "token-vectors.db")
    try:
        await store.put({candidate.chunk_id: token_matrix(candidate.text) for candidate in candidates()})
        yield LateInteractionReranker(token_vectors=store, model_name="words")
    finally:
        await store.aclose()


FACTORIES = [
    pytest.param(tei, id="tei"),
    pytest.param(v1_results, id="v1-results"),
    pytest.param(llama_cpp, id="logits"),
    pytest.param(late_interaction, id="late-interaction"),
]


@pytest.fixture(params=FACTORIES)
def check(request: pytest.FixtureRequest, tmp_path: Path) -> Check:
    """Runs a check on a fresh reranker inside one event loop."""
    factory: RerankerFactory = request.param

    async def story(body: Callable[[Reranker], Awaitable[None]]) -> None:
        async with factory(tmp_path) as reranker:
            await body(reranker)

    return lambda body: run(story(body))


def soon() -> Deadline:
    return Deadline.after(20.0)


def best(answer: RerankScores) -> int:
    return max(range(len(answer.scores)), key=lambda index: answer.scores[index] or 0.0)


def test_every_candidate_has_a_score_in_its_place_and_the_best_text_the_highest(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        answer = await reranker.rank(question(), candidates(), soon())
        assert len(answer.scores) == len(TEXTS)
        assert None not in answer.scores
        assert best(answer) == BEST

    check(body)


def test_scores_follow_the_candidates_when_their_order_changes(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        forth = await reranker.rank(question(), candidates(), soon())
        back = await reranker.rank(question(), candidates()[::-1], soon())
        assert back.scores[::-1] == pytest.approx(forth.scores, abs=1e-6)

    check(body)


def test_no_candidates_give_no_scores(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        assert (await reranker.rank(question(), [], soon())).scores == ()

    check(body)


def test_the_answer_names_dialect_model_and_a_known_scale(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        answer = await reranker.rank(question(), candidates(), soon())
        assert answer.dialect
        assert answer.model
        assert answer.relevance_scale in ("sigmoid", "raw")
        if answer.relevance_scale == "sigmoid":
            assert all(score is not None and 0.0 <= score <= 1.0 for score in answer.scores)

    check(body)


def test_an_expired_deadline_is_unavailable_with_its_cause(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        with pytest.raises(RerankerUnavailable) as caught:
            await reranker.rank(question(), candidates(), Deadline.after(-1.0))
        assert caught.value.cause == "timeout"

    check(body)


def test_closing_twice_is_closing_once(check: Check) -> None:
    async def body(reranker: Reranker) -> None:
        await reranker.rank(question(), candidates(), soon())
        await reranker.aclose()
        await reranker.aclose()

    check(body)
