"""MaxSim, the lexical share, and what is said when vectors are missing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.clients.late_interaction import LateInteractionReranker, max_sim, mix
from app.domain.deadline import Deadline
from app.domain.errors import RerankerUnavailable, StoreUnavailable
from app.domain.ports import RerankCandidate, RerankQuery, RerankScores
from app.domain.vectors import FloatArray, QueryVectors, TokenMatrix
from tests.support.aio import run

DIMENSION = 16


class Stored:
    """Token vectors in memory, with a way to be slow or broken."""

    def __init__(self, matrices: Mapping[UUID, TokenMatrix], *, delay_s: float = 0.0, broken: bool = False) -> None:
        self.matrices, self.delay_s, self.broken = dict(matrices), delay_s, broken
        self.asked: list[UUID] = []

    async def get(self, chunk_ids: Sequence[UUID]) -> dict[UUID, TokenMatrix]:
        self.asked += chunk_ids
        await asyncio.sleep(self.delay_s)
        if self.broken:
            raise StoreUnavailable("disk I/O error", cause="bad_answer")
        return {key: self.matrices[key] for key in chunk_ids if key in self.matrices}

    async def put(self, matrices: Mapping[UUID, TokenMatrix]) -> None:
        self.matrices.update(matrices)

    async def delete(self, chunk_ids: Sequence[UUID]) -> None:
        for key in chunk_ids:
            self.matrices.pop(key, None)

    async def size_bytes(self) -> int:
        return sum(matrix.nbytes for matrix in self.matrices.values())


def unit(rows: np.ndarray) -> FloatArray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def near(rows: FloatArray, noise: float, *, seed: int = 0) -> TokenMatrix:
    """A passage that holds the query's tokens with some noise, among unrelated ones."""
    random = np.random.default_rng(seed)
    own = rows + noise * random.normal(size=rows.shape)
    mixed = np.concatenate([own, random.normal(size=(5, rows.shape[1]))])
    return np.rint(mixed / np.abs(mixed).max(-1, keepdims=True) * 127).astype(np.int8)


TOKENS = unit(np.random.default_rng(42).normal(size=(4, DIMENSION)))


def candidate(key: UUID, lexical: float | None = None) -> RerankCandidate:
    return RerankCandidate(chunk_id=key, text="", fused=0.0, cosine=None, lexical=lexical)


def rank(
    store: Stored, candidates: Sequence[RerankCandidate], *, tokens: FloatArray | None = TOKENS, **options: float | int
) -> RerankScores:
    reranker = LateInteractionReranker(token_vectors=store, model_name="tiny", **options)
    vectors = QueryVectors(dense=np.ones(DIMENSION, np.float32), tokens=tokens)
    return run(reranker.rank(RerankQuery(text="q", vectors=vectors), candidates, Deadline.after(5)))


def test_max_sim_is_the_mean_of_each_query_tokens_best_cosine() -> None:
    matrices = [near(TOKENS, noise, seed=n) for n, noise in enumerate((0.1, 0.5, 2.0))] + [near(TOKENS[:1], 0.3)]
    expected = []
    for matrix in matrices:
        best = [
            max(float(token @ row) / float(np.linalg.norm(row)) for row in matrix.astype(np.float64))
            for token in TOKENS.astype(np.float64)
        ]
        expected.append(sum(best) / len(best))
    np.testing.assert_allclose(max_sim(TOKENS, matrices), expected, rtol=1e-5)


def test_a_row_of_zeros_matches_nothing() -> None:
    zeros = np.zeros((3, DIMENSION), np.int8)
    assert max_sim(TOKENS, [zeros])[0] == 0.0


def test_the_nearer_passage_has_the_higher_score() -> None:
    close, far = uuid4(), uuid4()
    store = Stored({close: near(TOKENS, 0.1), far: near(TOKENS, 2.0)})
    answer = rank(store, [candidate(far), candidate(close)])
    assert answer.scores[1] is not None
    assert answer.scores[0] is not None
    assert answer.scores[1] > answer.scores[0]
    assert (answer.dialect, answer.model, answer.relevance_scale) == ("late_interaction", "tiny", "raw")


def test_candidates_beyond_the_pool_get_none_and_are_not_read() -> None:
    known, beyond = uuid4(), uuid4()
    store = Stored({known: near(TOKENS, 0.1), beyond: near(TOKENS, 0.1)})
    answer = rank(store, [candidate(known), candidate(beyond)], pool=1)
    assert [score is None for score in answer.scores] == [False, True]
    assert beyond not in store.asked


@pytest.mark.parametrize(
    "stored", [None, np.ones((2, DIMENSION + 1), np.int8), np.zeros((0, DIMENSION), np.int8)], ids=str
)
def test_one_candidate_without_usable_vectors_is_a_whole_reranking_that_is_missing(stored: Any) -> None:
    known, odd = uuid4(), uuid4()
    matrices = {known: near(TOKENS, 0.1)} | ({} if stored is None else {odd: stored})
    with pytest.raises(RerankerUnavailable, match="1 of 2 candidates") as caught:
        rank(Stored(matrices), [candidate(known), candidate(odd)])
    assert caught.value.cause == "missing"


def test_no_candidates_have_no_scores() -> None:
    assert rank(Stored({}), []).scores == ()


@pytest.mark.parametrize("tokens", [None, np.zeros((0, DIMENSION), np.float32)])
def test_a_query_without_token_vectors_is_unavailable_as_missing(tokens: FloatArray | None) -> None:
    key = uuid4()
    with pytest.raises(RerankerUnavailable) as caught:
        rank(Stored({key: near(TOKENS, 0.1)}), [candidate(key)], tokens=tokens)
    assert caught.value.cause == "missing"


def test_a_query_without_vectors_at_all_is_unavailable_as_missing() -> None:
    reranker = LateInteractionReranker(token_vectors=Stored({}), model_name="tiny")
    with pytest.raises(RerankerUnavailable) as caught:
        run(reranker.rank(RerankQuery(text="q", vectors=None), [candidate(uuid4())], Deadline.after(5)))
    assert caught.value.cause == "missing"


def test_candidates_none_of_which_has_vectors_are_unavailable_as_missing() -> None:
    with pytest.raises(RerankerUnavailable) as caught:
        rank(Stored({}), [candidate(uuid4()), candidate(uuid4())])
    assert caught.value.cause == "missing"


def test_a_store_that_fails_is_an_unavailable_reranker_with_its_cause() -> None:
    with pytest.raises(RerankerUnavailable, match="disk I/O error") as caught:
        rank(Stored({}, broken=True), [candidate(uuid4())])
    assert caught.value.cause == "bad_answer"


@pytest.mark.parametrize("seconds", [-1.0, 0.02])
def test_the_deadline_is_kept(seconds: float) -> None:
    key = uuid4()
    reranker = LateInteractionReranker(token_vectors=Stored({key: near(TOKENS, 1)}, delay_s=10.0), model_name="tiny")
    query = RerankQuery(text="q", vectors=QueryVectors(dense=TOKENS[0], tokens=TOKENS))
    with pytest.raises(RerankerUnavailable) as caught:
        run(reranker.rank(query, [candidate(key)], Deadline.after(seconds)))
    assert caught.value.cause == "timeout"


def test_lexical_evidence_decides_between_passages_that_are_about_equal() -> None:
    first, second, third = uuid4(), uuid4(), uuid4()
    store = Stored({first: near(TOKENS, 0.2), second: near(TOKENS, 0.21), third: near(TOKENS, 3.0)})
    keys = (first, second, third)
    plain = rank(store, [candidate(key) for key in keys]).scores
    mixed = rank(store, [candidate(first), candidate(second, lexical=8.0), candidate(third)]).scores
    assert np.argmax(plain) == 0
    assert np.argmax(mixed) == 1


def test_mixing_is_the_order_of_z_scores() -> None:
    similarity, lexical = np.array([0.9, 0.7, 0.8]), [2.0, None, 6.0]
    filled = np.array([2.0, 0.0, 6.0])
    z = (similarity - similarity.mean()) / similarity.std() + 0.3 * (filled - filled.mean()) / filled.std()
    np.testing.assert_allclose(
        (mix(similarity, lexical, weight=0.3) - similarity.mean()) / similarity.std(), z, rtol=1e-9
    )


@pytest.mark.parametrize("lexical", [[None, None, None], [4.0, 4.0, 4.0]])
def test_lexical_scores_that_tell_nothing_apart_change_nothing(lexical: list[float | None]) -> None:
    similarity = np.array([0.9, 0.7, 0.8])
    np.testing.assert_array_equal(mix(similarity, lexical, weight=0.3), similarity)


def test_one_candidate_alone_keeps_its_similarity() -> None:
    np.testing.assert_array_equal(mix(np.array([0.5]), [7.0], weight=0.3), [0.5])
