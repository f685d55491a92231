"""The final order of the hits and the token budget."""

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.domain.search import Hit, Ranks, Scores, VisibleChunk
from app.retrieval.floor import apply_floor
from app.retrieval.fusion import Candidate
from app.retrieval.ranking import fused_order, rerank_order, within_budget


def candidate(number: int, **scores: Any) -> Candidate:
    return Candidate(chunk_id=UUID(int=number), fused=1 / number, **scores)


def places(numbers: list[int]) -> dict[UUID, VisibleChunk]:
    return {UUID(int=n): VisibleChunk(chunk_id=UUID(int=n), document_id=UUID(int=1), chunk_index=n) for n in numbers}


def order(scores: list[float | None], count: int) -> list[int]:
    numbers = list(range(1, count + 1))
    ranked = rerank_order(fused_order([candidate(n) for n in numbers]), scores, places(numbers))
    return [entry.candidate.chunk_id.int for entry in ranked]


def test_the_rerank_score_decides() -> None:
    assert order([0.1, 0.9, 0.5], 3) == [2, 3, 1]


def test_equal_scores_keep_the_fused_order() -> None:
    assert order([0.5, 0.5, 0.9, 0.5], 4) == [3, 1, 2, 4]


def test_a_negative_score_is_still_a_score() -> None:
    assert order([-2.0, None, -1.0], 3) == [3, 1, 2]


def test_candidates_without_a_score_follow_in_fused_order_and_the_rest_after_them() -> None:
    assert order([None, 0.2, None], 5) == [2, 1, 3, 4, 5]


def test_the_floor_keeps_a_full_lexical_match_and_what_has_no_cosine() -> None:
    low_match = candidate(1, cosine=0.1, lexical_rank=1)
    low_partial = candidate(2, cosine=0.1, lexical_rank=2)
    low_dense = candidate(3, cosine=0.1)
    unknown, high = candidate(4), candidate(5, cosine=0.2)
    kept = apply_floor([low_match, low_partial, low_dense, unknown, high], 0.2, lambda i: i.int == 1)
    assert [c.chunk_id.int for c in kept] == [1, 4, 5]


def hit(number: int) -> Hit:
    return Hit(
        chunk_id=UUID(int=number),
        document_id=UUID(int=1),
        collection_id=UUID(int=1),
        source_name="a.md",
        chunk_index=number,
        text="t",
        content_start=0,
        section_path=(),
        page=None,
        span=None,
        relevance=None,
        relevance_source=None,
        reranked=False,
        scores=Scores(),
        ranks=Ranks(),
    )


def test_the_budget_keeps_the_first_hit_even_when_it_alone_is_too_large() -> None:
    assert within_budget([hit(1), hit(2)], [100, 5], 10) == (hit(1),)


def test_the_budget_skips_what_does_not_fit_and_goes_on() -> None:
    assert within_budget([hit(1), hit(2), hit(3)], [5, 20, 5], 10) == (hit(1), hit(3))


@given(st.lists(st.integers(min_value=1, max_value=50), min_size=1, max_size=20), st.integers(1, 200))
def test_the_budget_is_never_exceeded_by_more_than_the_first_hit(costs: list[int], limit: int) -> None:
    kept = within_budget([hit(n) for n in range(len(costs))], costs, limit)
    assert sum(costs[h.chunk_index] for h in kept) <= max(limit, costs[0])
