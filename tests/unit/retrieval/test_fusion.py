"""Reciprocal rank fusion and the lexical gate."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.index import DenseHit, LexicalHit
from app.retrieval.fusion import gate, reciprocal_rank_fusion


def an_id(number: int) -> UUID:
    return UUID(int=number)


def lexical(number: int, *, score: float = 1.0, matched: int = 1, cosine: float | None = 0.5) -> LexicalHit:
    return LexicalHit(chunk_id=an_id(number), score=score, matched_terms=matched, cosine=cosine)


def test_a_chunk_in_both_lists_beats_a_chunk_that_leads_only_one() -> None:
    fused = reciprocal_rank_fusion([DenseHit(an_id(1), 0.9), DenseHit(an_id(2), 0.8)], [lexical(2)])
    assert [candidate.chunk_id for candidate in fused] == [an_id(2), an_id(1)]


def test_the_score_is_the_sum_of_weighted_reciprocal_ranks() -> None:
    (first,) = reciprocal_rank_fusion([DenseHit(an_id(1), 0.9)], [lexical(1)], k=60, dense_weight=2, lexical_weight=0.5)
    assert first.fused == pytest.approx(2 / 61 + 0.5 / 61)


def test_every_candidate_keeps_the_scores_and_ranks_it_earned() -> None:
    fused = reciprocal_rank_fusion([DenseHit(an_id(1), 0.9)], [lexical(2, score=7.5, cosine=0.3)])
    by_id = {candidate.chunk_id: candidate for candidate in fused}
    assert (by_id[an_id(1)].dense_rank, by_id[an_id(1)].lexical_rank, by_id[an_id(1)].lexical) == (1, None, None)
    assert (by_id[an_id(2)].lexical_rank, by_id[an_id(2)].lexical, by_id[an_id(2)].cosine) == (1, 7.5, 0.3)


@pytest.mark.parametrize(("matched", "terms", "stays"), [(1, 2, True), (1, 3, False), (2, 3, True), (0, 1, False)])
def test_a_lexical_candidate_needs_half_of_the_query_terms(matched: int, terms: int, stays: bool) -> None:
    assert bool(gate([lexical(1, matched=matched)], terms)) is stays


def test_an_accidental_lexical_list_does_not_change_the_dense_order() -> None:
    """A Russian question over English passages: the only common term is a number."""
    dense = [DenseHit(an_id(n), 1 - n / 10) for n in range(1, 6)]
    accidental = gate([lexical(5, matched=1), lexical(4, matched=1)], query_terms=6)
    fused = reciprocal_rank_fusion(dense, accidental)
    assert [candidate.chunk_id for candidate in fused] == [hit.chunk_id for hit in dense]


ids = st.lists(st.integers(min_value=1, max_value=30), unique=True, max_size=20)


@given(dense=ids, words=ids, k=st.integers(min_value=1, max_value=100))
def test_fusion_returns_every_candidate_once_in_descending_order(dense: list[int], words: list[int], k: int) -> None:
    fused = reciprocal_rank_fusion([DenseHit(an_id(n), 0.5) for n in dense], [lexical(n) for n in words], k=k)
    assert sorted(c.chunk_id for c in fused) == sorted({an_id(n) for n in (*dense, *words)})
    assert [c.fused for c in fused] == sorted((c.fused for c in fused), reverse=True)


@given(dense=ids, words=ids)
def test_fusion_is_a_function_of_its_input(dense: list[int], words: list[int]) -> None:
    runs = [
        reciprocal_rank_fusion([DenseHit(an_id(n), 0.5) for n in dense], [lexical(n) for n in words]) for _ in range(3)
    ]
    assert runs[0] == runs[1] == runs[2]
