"""Weighted reciprocal rank fusion with a lexical list gated by evidence. Pure, deterministic.

Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009. The gate is ours: a lexical candidate earns credit
only when it holds at least half of the query's terms, which keeps accidental matches of another language out.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from app.domain.index import DenseHit, LexicalHit

GATE_SHARE = 0.5


class Candidate(Struct, frozen=True, kw_only=True):
    """A chunk with every score and rank it earned; ranks count from 1. `lexical` is None unless it passed the gate."""

    chunk_id: UUID
    fused: float
    cosine: float | None = None
    lexical: float | None = None
    dense_rank: int | None = None
    lexical_rank: int | None = None


def passes_gate(hit: LexicalHit, query_terms: int) -> bool:
    """At least half of the query's distinct terms are in the chunk; terms that no chunk holds count too."""
    return hit.matched_terms >= GATE_SHARE * query_terms


def gate(hits: Sequence[LexicalHit], query_terms: int) -> list[LexicalHit]:
    """The lexical list without accidental matches, order kept."""
    return [hit for hit in hits if passes_gate(hit, query_terms)]


def reciprocal_rank_fusion(
    dense: Sequence[DenseHit],
    lexical: Sequence[LexicalHit],
    *,
    k: int = 60,
    dense_weight: float = 1.0,
    lexical_weight: float = 1.0,
) -> list[Candidate]:
    """Σ weight / (k + rank) over both lists, best first. Ties: higher cosine, then the smaller chunk id."""
    dense_ranks = {hit.chunk_id: rank for rank, hit in enumerate(dense, start=1)}
    lexical_ranks = {hit.chunk_id: rank for rank, hit in enumerate(lexical, start=1)}
    cosines = {hit.chunk_id: hit.cosine for hit in lexical} | {hit.chunk_id: hit.cosine for hit in dense}
    lexical_scores = {hit.chunk_id: hit.score for hit in lexical}

    def candidate(chunk_id: UUID) -> Candidate:
        dense_rank, lexical_rank = dense_ranks.get(chunk_id), lexical_ranks.get(chunk_id)
        fused = (dense_weight / (k + dense_rank) if dense_rank else 0.0) + (
            lexical_weight / (k + lexical_rank) if lexical_rank else 0.0
        )
        return Candidate(
            chunk_id=chunk_id,
            fused=fused,
            cosine=cosines[chunk_id],
            lexical=lexical_scores.get(chunk_id),
            dense_rank=dense_rank,
            lexical_rank=lexical_rank,
        )

    return sorted(map(candidate, cosines), key=_fused_order)


def _fused_order(candidate: Candidate) -> tuple[float, float, bytes]:
    cosine = candidate.cosine if candidate.cosine is not None else -2.0
    return -candidate.fused, -cosine, candidate.chunk_id.bytes
