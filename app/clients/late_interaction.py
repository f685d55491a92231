"""Late interaction over stored token vectors, as the port's Reranker (MaxSim: ColBERT, Khattab & Zaharia 2020)."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt

from app.domain.deadline import Deadline
from app.domain.errors import RerankerUnavailable, Unavailable
from app.domain.ports import RerankCandidate, RerankQuery, RerankScores, TokenVectorStore
from app.domain.vectors import FloatArray, TokenMatrix

ScoreArray = npt.NDArray[np.float64]


class LateInteractionReranker:
    """Scores the first `pool` candidates by MaxSim, with a share of their lexical scores.

    A candidate that has no stored token vectors, or lies beyond the pool, gets None.
    """

    def __init__(
        self, *, token_vectors: TokenVectorStore, model_name: str, lexical_weight: float = 0.3, pool: int = 20
    ) -> None:
        """`model_name` is the embedder's. `lexical_weight` is in standard deviations of MaxSim (see `mix`)."""
        self._token_vectors, self._model_name = token_vectors, model_name
        self._lexical_weight, self._pool = lexical_weight, pool

    async def rank(self, query: RerankQuery, candidates: Sequence[RerankCandidate], deadline: Deadline) -> RerankScores:
        """RerankerUnavailable: `missing` when the query or one of the pool has no token vectors, `timeout`.

        All or none: a candidate without a score would stand behind all others, whatever it says.
        """
        if not candidates:
            return self._answer(())
        tokens = query.vectors.tokens if query.vectors else None
        if tokens is None or not len(tokens):
            raise RerankerUnavailable("the query has no token vectors", cause="missing")
        if deadline.expired():
            raise RerankerUnavailable("no time was left for late interaction", cause="timeout")
        try:
            async with asyncio.timeout(deadline.remaining_s()):
                return self._answer(await self._scores(tokens, candidates))
        except TimeoutError:
            raise RerankerUnavailable("late interaction took longer than the deadline", cause="timeout") from None

    async def aclose(self) -> None:
        """The token vectors belong to whoever opened them."""

    async def _scores(self, tokens: FloatArray, candidates: Sequence[RerankCandidate]) -> tuple[float | None, ...]:
        pool = candidates[: self._pool]
        matrices = await self._matrices([candidate.chunk_id for candidate in pool], tokens.shape[1])
        missing = sum(candidate.chunk_id not in matrices for candidate in pool)
        if missing:
            raise RerankerUnavailable(f"{missing} of {len(pool)} candidates have no token vectors", cause="missing")
        similarity = await asyncio.to_thread(max_sim, tokens, [matrices[candidate.chunk_id] for candidate in pool])
        mixed = mix(similarity, [candidate.lexical for candidate in pool], weight=self._lexical_weight)
        scores = {candidate.chunk_id: float(score) for candidate, score in zip(pool, mixed, strict=True)}
        return tuple(scores.get(candidate.chunk_id) for candidate in candidates)

    async def _matrices(self, chunk_ids: list[UUID], dimension: int) -> dict[UUID, TokenMatrix]:
        """Stored rows of the query's own dimension; others, and empty ones, count as missing."""
        try:
            stored = await self._token_vectors.get(chunk_ids)
        except Unavailable as error:
            raise RerankerUnavailable(f"token vectors cannot be read: {error}", cause=error.cause) from error
        return {key: matrix for key, matrix in stored.items() if len(matrix) and matrix.shape[1] == dimension}

    def _answer(self, scores: tuple[float | None, ...]) -> RerankScores:
        return RerankScores(scores=scores, dialect="late_interaction", model=self._model_name, relevance_scale="raw")


def max_sim(query_tokens: FloatArray, matrices: Sequence[TokenMatrix]) -> ScoreArray:
    """For each matrix, the mean over the query's tokens of the best cosine among its rows: shape (len(matrices),).

    `query_tokens` (q, dim) are L2-normalised; no matrix is empty. One matrix product for all passages.
    """
    rows = np.concatenate(matrices).astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    cosines = (query_tokens @ rows.T) / np.maximum(norms, np.float32(1e-9))
    starts = np.cumsum([0, *(len(matrix) for matrix in matrices[:-1])])
    best = np.maximum.reduceat(cosines, starts, axis=1)
    return np.asarray(best.mean(axis=0, dtype=np.float64))


def mix(similarity: ScoreArray, lexical: Sequence[float | None], *, weight: float) -> ScoreArray:
    """Similarity plus `weight` × its standard deviation × z(lexical): the order of z-scores, on the cosine's scale.

    A candidate without a lexical score has none of the query's evidence: it counts as 0 in the z-scores. Measured on
    XQuAD over all 1,190 questions with 0.3, recall@1: ru .955 without mixing, .961 with it (.956 with z over the
    scored ones alone); en .975, .971 (.969); across languages nothing changes.
    """
    scores = np.array([score or 0.0 for score in lexical], dtype=np.float64)
    spread = float(scores.std())
    if spread == 0.0:
        return similarity
    return np.asarray(similarity + weight * similarity.std() * (scores - scores.mean()) / spread)
