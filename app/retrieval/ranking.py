"""From fused candidates and a reranker's scores to the order of the hits. Pure."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from app.domain.ports import RerankScores
from app.domain.search import Hit, Passage, Ranks, Scores, VisibleChunk
from app.retrieval.fusion import Candidate


class Ranked(Struct, frozen=True, kw_only=True):
    """A candidate in its final place, with its rank among the fused ones."""

    candidate: Candidate
    fused_rank: int
    rerank: float | None = None


def fused_order(candidates: Sequence[Candidate]) -> list[Ranked]:
    return [Ranked(candidate=candidate, fused_rank=rank) for rank, candidate in enumerate(candidates, start=1)]


def rerank_order(
    fused: Sequence[Ranked], scores: Sequence[float | None], places: Mapping[UUID, VisibleChunk]
) -> list[Ranked]:
    """Scored candidates first: by score, then fused rank, then (document, chunk index). The others keep their order."""
    scored, unscored = list[Ranked](), list[Ranked]()
    for entry, score in zip(fused, scores, strict=False):
        ranked = Ranked(candidate=entry.candidate, fused_rank=entry.fused_rank, rerank=score)
        (unscored if score is None else scored).append(ranked)

    def order(entry: Ranked) -> tuple[float, int, bytes, int]:
        place = places[entry.candidate.chunk_id]
        return -(entry.rerank or 0.0), entry.fused_rank, place.document_id.bytes, place.chunk_index

    return [*sorted(scored, key=order), *unscored, *fused[len(scores) :]]


def to_hit(entry: Ranked, passage: Passage, reranked_by: RerankScores | None) -> Hit:
    """What the caller sees. A relevance is only given where the reranker's scores are probabilities."""
    candidate = entry.candidate
    calibrated = reranked_by is not None and reranked_by.relevance_scale == "sigmoid" and entry.rerank is not None
    return Hit(
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        collection_id=passage.collection_id,
        source_name=passage.source_name,
        chunk_index=passage.chunk_index,
        text=passage.text,
        content_start=passage.content_start,
        section_path=passage.section_path,
        page=passage.page,
        span=passage.span,
        relevance=entry.rerank if calibrated else None,
        relevance_source=f"{reranked_by.model}/sigmoid-1" if calibrated and reranked_by is not None else None,
        reranked=entry.rerank is not None,
        scores=Scores(cosine=candidate.cosine, lexical=candidate.lexical, fused=candidate.fused, rerank=entry.rerank),
        ranks=Ranks(dense=candidate.dense_rank, lexical=candidate.lexical_rank, fused=entry.fused_rank),
    )


def within_budget(hits: Sequence[Hit], tokens: Sequence[int], max_tokens: int) -> tuple[Hit, ...]:
    """Always keeps the first hit; skips one that does not fit and goes on to the next."""
    kept, spent = list[Hit](), 0
    for hit, cost in zip(hits, tokens, strict=True):
        if not kept or spent + cost <= max_tokens:
            kept.append(hit)
            spent += cost
    return tuple(kept)
