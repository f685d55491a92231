"""A query's way from text to hits."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

import structlog
from msgspec import UNSET, Struct

from app.config.layers import ResolvedConfig
from app.domain.deadline import Deadline
from app.domain.errors import KroshkaError, ModelMismatch, TransientError, Unavailable, UpstreamRefused
from app.domain.index import IndexAnswer, IndexFilter, IndexQuery, LexicalHit
from app.domain.ports import (
    RerankCandidate,
    Reranker,
    RerankQuery,
    RerankScores,
    SearchCatalog,
    TokenCounter,
    VectorIndex,
)
from app.domain.search import (
    Hit,
    KnobValue,
    Passage,
    RerankerInfo,
    SearchQuery,
    SearchResult,
    SearchScope,
    SearchSnapshot,
    VisibleChunk,
)
from app.domain.vectors import EmbeddingModel, QueryVectors
from app.retrieval.floor import apply_floor, below_floor
from app.retrieval.fusion import Candidate, gate, reciprocal_rank_fusion
from app.retrieval.plan import SearchPlan, make_plan, query_weight
from app.retrieval.ranking import Ranked, fused_order, rerank_order, to_hit, within_budget
from app.retrieval.rerankers import Rerankers
from app.retrieval.singleflight import QueryVectorCache
from app.retrieval.turn import Turn, cause_of
from app.text.lexical import is_full_match, lexical_title, query_terms, query_vector

EMBED_SHARE = 0.6  # of the whole time: what is left must be enough for a search by words alone
REFILL_FACTOR = 4
HELPER_FAILURES = (Unavailable, UpstreamRefused, TimeoutError)


class Configuration(Protocol):
    """The layered knobs of a workspace."""

    async def resolve(self, workspace_id: UUID) -> ResolvedConfig: ...


class SearchReport(Struct, frozen=True, kw_only=True):
    """One finished search in numbers, for logs and metrics. Never a text, a name or an id."""

    outcome: str
    door: str
    timings_ms: Mapping[str, float]
    degraded: Sequence[tuple[str, str]] = ()
    dense_candidates: int = 0
    lexical_candidates: int = 0
    hits: int = 0
    lexical_blind: bool = False
    vector_cache: str | None = None
    top_relevance: float | None = None
    reranked: bool = False


Observer = Callable[[SearchReport], None]


class _Found(Struct, kw_only=True):
    """What the stages hand on."""

    vectors: QueryVectors | None = None
    terms: list[str]
    answer: IndexAnswer = IndexAnswer()
    places: dict[UUID, VisibleChunk] = {}
    cache: str | None = None
    reranker: Reranker | None = None


class SearchPipeline:
    """gate → configuration → embed ∥ tokenize → search → visible → fuse → floor → rerank → budget → hits."""

    def __init__(
        self,
        *,
        catalog: SearchCatalog,
        index: VectorIndex,
        model: EmbeddingModel,
        vectors: QueryVectorCache,
        configuration: Configuration,
        rerankers: Rerankers,
        token_counter: TokenCounter | None = None,
        max_timeout_s: float = 30.0,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog, self._index, self._model, self._vectors = catalog, index, model, vectors
        self._configuration, self._rerankers, self._token_counter = configuration, rerankers, token_counter
        self._max_timeout_s, self._observer, self._clock = max_timeout_s, observer, clock
        self._log = structlog.get_logger("kroshka.retrieval")

    async def search(self, query: SearchQuery) -> SearchResult:
        """Hits with every score. Raises IndexUnavailable: the index is the one thing that no search can do without."""
        turn, found = Turn(), _Found(terms=[])
        try:
            result = await self._search(query, turn, found)
        except KroshkaError as error:
            outcome = "unavailable" if isinstance(error, TransientError) else "error"
            self._report(query, SearchResult(outcome=outcome), turn, found)
            raise
        self._report(query, result, turn, found)
        return result

    async def _search(self, query: SearchQuery, turn: Turn, found: _Found) -> SearchResult:
        with turn.stage("config"):
            resolved = await self._configuration.resolve(query.workspace_id)
        choice = self._rerankers.of(resolved.config)
        pool = choice.pool if choice else None
        plan = make_plan(query, resolved.config, max_timeout_s=self._max_timeout_s, reranker_pool=pool)
        if not plan.text or query_weight(plan.text) < resolved.config.query_min_length:
            return self._nothing("query_too_short" if plan.text else "no_query", turn)
        deadline = Deadline.after(plan.timeout_s, self._clock)
        scope = SearchScope(workspace_id=query.workspace_id, collection_ids=query.collection_ids)
        with turn.stage("gate"):
            snapshot = await self._catalog.snapshot(scope)
        if not snapshot.has_documents:
            return self._nothing("no_documents", turn)
        self._check_model(snapshot)

        await self._embed_and_tokenize(query, plan, turn, found, deadline)
        await self._find_visible(scope, snapshot, plan, turn, found, deadline)
        candidates = await self._fuse(plan, resolved, turn, found)
        found.reranker = choice.reranker if choice else None
        ranked, rerank_scores, passages = await self._rerank(plan, candidates, turn, found, deadline)
        hits = await self._hits(query, ranked[: plan.top_k], passages, rerank_scores, turn)
        return self._answer(query, resolved, turn, hits, rerank_scores, await self._before(query, plan, candidates))

    def _check_model(self, snapshot: SearchSnapshot) -> None:
        if snapshot.model_key != self._model.key:
            raise ModelMismatch(
                f"the index was built with {snapshot.model_key}, queries are embedded with {self._model.key}"
            )

    async def _embed_and_tokenize(
        self, query: SearchQuery, plan: SearchPlan, turn: Turn, found: _Found, deadline: Deadline
    ) -> None:
        """Both at once; without an embedder the words alone are searched."""
        embedding = asyncio.create_task(self._embed(query, plan, turn, deadline)) if plan.dense else None
        if plan.lexical:
            found.terms = query_terms(plan.text)
        if embedding is not None:
            found.vectors, found.cache = await embedding

    async def _embed(
        self, query: SearchQuery, plan: SearchPlan, turn: Turn, deadline: Deadline
    ) -> tuple[QueryVectors | None, str | None]:
        failure: Exception
        try:
            with turn.stage("embed"):
                return await self._vectors.vectors(
                    query.workspace_id, plan.text, deadline.sooner(plan.timeout_s * EMBED_SHARE)
                )
        except HELPER_FAILURES as error:
            failure = error
        turn.degrade("embed", failure)
        if not plan.lexical:
            raise failure
        return None, None

    async def _find_visible(
        self,
        scope: SearchScope,
        snapshot: SearchSnapshot,
        plan: SearchPlan,
        turn: Turn,
        found: _Found,
        deadline: Deadline,
    ) -> None:
        """Asks the index, keeps what may be seen; asks once more, deeper, when that emptied places."""
        await self._find(scope, snapshot, plan.pool_depth, plan, turn, found, deadline)
        returned = len(_chunk_ids(found.answer))
        saturated = max(len(found.answer.dense), len(found.answer.lexical)) >= plan.pool_depth
        if saturated and len(found.places) < min(plan.top_k, returned):
            await self._find(scope, snapshot, plan.pool_depth * REFILL_FACTOR, plan, turn, found, deadline)
        if plan.lexical and found.terms and not found.answer.lexical:
            turn.notes.append("lexical_blind")

    async def _find(
        self,
        scope: SearchScope,
        snapshot: SearchSnapshot,
        depth: int,
        plan: SearchPlan,
        turn: Turn,
        found: _Found,
        deadline: Deadline,
    ) -> None:
        request = IndexQuery(
            filter=IndexFilter(workspace_id=scope.workspace_id, collection_ids=scope.collection_ids),
            limit=depth,
            dense=found.vectors.dense if found.vectors else None,
            lexical=query_vector(plan.text) if plan.lexical and found.terms else None,
        )
        if request.dense is None and request.lexical is None:
            return
        with turn.stage("search"):
            found.answer = await self._index.search(request, deadline)
        with turn.stage("visible"):
            visible = await self._catalog.visible(_chunk_ids(found.answer), snapshot)
        found.places = {place.chunk_id: place for place in visible}

    async def _fuse(self, plan: SearchPlan, resolved: ResolvedConfig, turn: Turn, found: _Found) -> list[Candidate]:
        config, places = resolved.config, found.places
        with turn.stage("fuse"):
            candidates = reciprocal_rank_fusion(
                [hit for hit in found.answer.dense if hit.chunk_id in places],
                [hit for hit in self._credited(found) if hit.chunk_id in places],
                k=config.rrf_k,
                dense_weight=config.dense_weight,
                lexical_weight=config.lexical_weight,
            )
            if plan.min_score is None:
                return candidates
            if found.vectors is None:
                turn.notes.append("floor_not_applied")
                return candidates
            return await self._floor(candidates, plan.min_score, found.terms)

    def _credited(self, found: _Found) -> Sequence[LexicalHit]:
        """The gate keeps accidental words from outvoting the vectors; where there are none, any word is better."""
        lexical = found.answer.lexical
        return lexical if found.vectors is None else gate(lexical, len(found.terms))

    async def _floor(self, candidates: list[Candidate], min_score: float, terms: Sequence[str]) -> list[Candidate]:
        doubtful = [c.chunk_id for c in below_floor(candidates, min_score) if c.lexical_rank is not None]
        passages = await self._catalog.passages(doubtful) if doubtful else {}

        def is_full(chunk_id: UUID) -> bool:
            passage = passages.get(chunk_id)
            return passage is not None and _is_full_match(terms, passage)

        return apply_floor(candidates, min_score, is_full)

    async def _rerank(
        self, plan: SearchPlan, candidates: Sequence[Candidate], turn: Turn, found: _Found, deadline: Deadline
    ) -> tuple[list[Ranked], RerankScores | None, dict[UUID, Passage]]:
        """The best candidates in the reranker's order; in fused order when it is off, missing, slow or wrong."""
        fused = fused_order(candidates)
        pool = fused[: plan.rerank_pool]
        passages = await self._catalog.passages([e.candidate.chunk_id for e in fused[: max(len(pool), plan.top_k)]])
        # A chunk may be purged between two reads; what is no longer there cannot be shown.
        fused = [entry for entry in fused if entry.candidate.chunk_id in passages or entry.fused_rank > len(passages)]
        pool = [entry for entry in pool if entry.candidate.chunk_id in passages]
        if found.reranker is None or not pool:
            return fused, None, passages
        question = RerankQuery(text=plan.text, vectors=found.vectors)
        try:
            with turn.stage("rerank"):
                scores = await found.reranker.rank(
                    question, _rerank_candidates(pool, passages), deadline.sooner(plan.rerank_timeout_s)
                )
        except HELPER_FAILURES as error:
            turn.degrade("rerank", error)
            self._log.warning("rerank_skipped", cause=cause_of(error))
            return fused, None, passages
        return rerank_order(fused, scores.scores, found.places), scores, passages

    async def _hits(
        self,
        query: SearchQuery,
        ranked: Sequence[Ranked],
        passages: dict[UUID, Passage],
        rerank_scores: RerankScores | None,
        turn: Turn,
    ) -> tuple[Hit, ...]:
        with turn.stage("render"):
            missing = [e.candidate.chunk_id for e in ranked if e.candidate.chunk_id not in passages]
            known = passages | (await self._catalog.passages(missing) if missing else {})
            hits = tuple(
                to_hit(entry, known[entry.candidate.chunk_id], rerank_scores)
                for entry in ranked
                if entry.candidate.chunk_id in known
            )
            return await self._within_budget(hits, query.max_tokens)

    async def _within_budget(self, hits: tuple[Hit, ...], max_tokens: int | None) -> tuple[Hit, ...]:
        if max_tokens is None or not hits:
            return hits
        texts = [hit.text for hit in hits]
        if self._token_counter is None:
            return within_budget(hits, [len(text.encode()) // 3 for text in texts], max_tokens)
        return within_budget(hits, await asyncio.to_thread(self._token_counter.count_tokens, texts), max_tokens)

    async def _before(self, query: SearchQuery, plan: SearchPlan, candidates: Sequence[Candidate]) -> tuple[Hit, ...]:
        """The first hits in fused order, for people who want to see what reranking changed."""
        if not query.explain:
            return ()
        ranked = fused_order(candidates)[: plan.top_k]
        passages = await self._catalog.passages([entry.candidate.chunk_id for entry in ranked])
        return tuple(
            to_hit(e, passages[e.candidate.chunk_id], None) for e in ranked if e.candidate.chunk_id in passages
        )

    def _answer(
        self,
        query: SearchQuery,
        resolved: ResolvedConfig,
        turn: Turn,
        hits: tuple[Hit, ...],
        rerank_scores: RerankScores | None,
        before: tuple[Hit, ...],
    ) -> SearchResult:
        reranker = RerankerInfo(dialect=rerank_scores.dialect, model=rerank_scores.model) if rerank_scores else None
        return SearchResult(
            outcome="hits" if hits else "no_results",
            hits=hits,
            degraded=tuple(turn.degraded),
            notes=tuple(turn.notes),
            reranker=reranker,
            timings_ms=turn.rounded_timings(),
            config=_explained(resolved) if query.explain else UNSET,
            before_rerank=before if query.explain else UNSET,
        )

    def _nothing(self, outcome: str, turn: Turn) -> SearchResult:
        return SearchResult(outcome=outcome, timings_ms=turn.rounded_timings())

    def _report(self, query: SearchQuery, result: SearchResult, turn: Turn, found: _Found) -> None:
        if self._observer is None:
            return
        self._observer(
            SearchReport(
                outcome=result.outcome,
                door=query.door,
                timings_ms=turn.timings_ms | {"total": turn.total_ms()},
                degraded=[(item.stage, item.cause) for item in turn.degraded],
                dense_candidates=len(found.answer.dense),
                lexical_candidates=len(found.answer.lexical),
                hits=len(result.hits),
                lexical_blind="lexical_blind" in turn.notes,
                vector_cache=found.cache,
                top_relevance=result.hits[0].relevance if result.hits else None,
                reranked=bool(result.hits and result.hits[0].reranked),
            )
        )


def _chunk_ids(answer: IndexAnswer) -> list[UUID]:
    """Candidates of both lists, each once, order kept."""
    return list(dict.fromkeys([hit.chunk_id for hit in answer.dense] + [hit.chunk_id for hit in answer.lexical]))


def _is_full_match(terms: Sequence[str], passage: Passage) -> bool:
    title = lexical_title(passage.source_name, passage.section_path)
    return is_full_match(terms, title_text=title, content=passage.text[passage.content_start :])


def _rerank_candidates(pool: Sequence[Ranked], passages: Mapping[UUID, Passage]) -> list[RerankCandidate]:
    return [
        RerankCandidate(
            chunk_id=entry.candidate.chunk_id,
            text=passages[entry.candidate.chunk_id].text,
            fused=entry.candidate.fused,
            cosine=entry.candidate.cosine,
            lexical=entry.candidate.lexical,
        )
        for entry in pool
    ]


def _explained(resolved: ResolvedConfig) -> dict[str, KnobValue]:
    knobs = {name: getattr(resolved.config, name) for name in resolved.config.__struct_fields__}
    return {
        _camel(name): KnobValue(value=value, layer=resolved.layers.get(name, "default"))
        for name, value in knobs.items()
    }


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
