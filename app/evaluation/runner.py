"""Asking every question of a set, one after the other, and measuring the answers."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.search import Hit, SearchQuery, SearchResult
from app.evaluation.measures import Figures, check_answerable, measure, percentile
from app.evaluation.modes import Mode
from app.evaluation.questions import Answer, Question, UnitOf, collapse

EVALUATION_TOP_K = 100  # deep enough that several chunks of one document do not push others out
DOOR = "tool"

OnProgress = Callable[[int, int], None]
"""Told after each question: how many are done, and how many there are."""


class Search(Protocol):
    """The retrieval pipeline, in this process or behind a client."""

    async def search(self, query: SearchQuery) -> SearchResult: ...


class StageTime(Struct, frozen=True, kw_only=True, rename="camel"):
    """A stage's own time over the answers that went through it, in milliseconds."""

    stage: str
    p50_ms: float
    p95_ms: float


class DegradedCount(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many answers went without a helper, and why."""

    stage: str
    cause: str
    answers: int


class ModeReport(Struct, frozen=True, kw_only=True):
    """One mode over all questions. `p50_ms` and `p95_ms` are wall times of whole searches.

    `reranked` is the number of answers that a reranker ordered and `rerank_pool` the most hits that it scored in one
    answer. `answers` are in the order of the questions.
    """

    mode: Mode
    top_k: int
    questions: int
    figures: Figures
    p50_ms: float
    p95_ms: float
    stages: tuple[StageTime, ...]
    degraded: int
    degradations: tuple[DegradedCount, ...]
    no_hits: int
    reranked: int
    rerank_pool: int
    answers: tuple[Answer, ...]


class Conditions(Struct, frozen=True, kw_only=True):
    """What all questions of a run share: what a hit counts as, where to search, how deep, and for how long."""

    unit_of: UnitOf
    workspace_id: UUID = DEFAULT_WORKSPACE
    collection_ids: tuple[UUID, ...] = ()
    top_k: int = EVALUATION_TOP_K
    timeout_ms: int | None = None


async def evaluate(
    search: Search,
    questions: Sequence[Question],
    mode: Mode,
    conditions: Conditions,
    *,
    on_progress: OnProgress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> ModeReport:
    """Asks and measures; every question must be answerable (InvalidInput). What a search raises ends the run.

    Latency is that of the service as it is: a search whose query vector is cached is faster than a first one, so give
    the service no vector cache when several modes are to be compared.
    """
    check_answerable(questions)
    answers = await ask(search, questions, mode, conditions, on_progress=on_progress, clock=clock)
    return report_of(questions, answers, mode, top_k=conditions.top_k)


async def ask(
    search: Search,
    questions: Sequence[Question],
    mode: Mode,
    conditions: Conditions,
    *,
    on_progress: OnProgress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Answer, ...]:
    """The answers in the order of the questions, asked one at a time: each has the machine to itself."""
    answers: list[Answer] = []
    for question in questions:
        query = _query(question, mode, conditions)
        began = clock()
        result = await search.search(query)
        answers.append(_answer(question, result, conditions.unit_of, latency_ms=(clock() - began) * 1000))
        if on_progress is not None:
            on_progress(len(answers), len(questions))
    return tuple(answers)


def report_of(questions: Sequence[Question], answers: Sequence[Answer], mode: Mode, *, top_k: int) -> ModeReport:
    """Measures answers that were had with `ask`. Raises InvalidInput when a question has no relevant unit."""
    figures = measure(questions, answers)
    latencies = [answer.latency_ms for answer in answers]
    causes = Counter(cause for answer in answers for cause in set(answer.degraded))
    return ModeReport(
        mode=mode,
        top_k=top_k,
        questions=len(questions),
        figures=figures,
        p50_ms=percentile(latencies, 50),
        p95_ms=percentile(latencies, 95),
        stages=_stage_times(answers),
        degraded=sum(bool(answer.degraded) for answer in answers),
        degradations=tuple(
            DegradedCount(stage=stage, cause=cause, answers=count) for (stage, cause), count in sorted(causes.items())
        ),
        no_hits=sum(not answer.units for answer in answers),
        reranked=sum(answer.reranked > 0 for answer in answers),
        rerank_pool=max(answer.reranked for answer in answers),
        answers=tuple(answers),
    )


def _query(question: Question, mode: Mode, conditions: Conditions) -> SearchQuery:
    return SearchQuery(
        text=question.text,
        workspace_id=conditions.workspace_id,
        collection_ids=question.collection_ids or conditions.collection_ids,
        overrides=mode.overrides(top_k=conditions.top_k),
        timeout_ms=conditions.timeout_ms,
        door=DOOR,
    )


def _answer(question: Question, result: SearchResult, unit_of: UnitOf, *, latency_ms: float) -> Answer:
    hits = result.hits
    return Answer(
        question_id=question.id,
        units=collapse([unit_of(question, hit) for hit in hits]),
        outcome=result.outcome,
        latency_ms=latency_ms,
        stages_ms=tuple(result.timings_ms.items()),
        degraded=tuple((item.stage, item.cause) for item in result.degraded),
        reranked=sum(hit.reranked for hit in hits),
        best_cosine=_best(hits, lambda hit: hit.scores.cosine),
        best_lexical=_best(hits, lambda hit: hit.scores.lexical),
        best_rerank=_best(hits, lambda hit: hit.scores.rerank),
    )


def _best(hits: Iterable[Hit], score_of: Callable[[Hit], float | None]) -> float | None:
    return max((score for hit in hits if (score := score_of(hit)) is not None), default=None)


def _stage_times(answers: Iterable[Answer]) -> tuple[StageTime, ...]:
    """In the order in which the stages first appear, which is the pipeline's own."""
    times: dict[str, list[float]] = {}
    for answer in answers:
        for stage, ms in answer.stages_ms:
            times.setdefault(stage, []).append(ms)
    return tuple(
        StageTime(stage=stage, p50_ms=percentile(values, 50), p95_ms=percentile(values, 95))
        for stage, values in times.items()
    )
