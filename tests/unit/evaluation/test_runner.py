from collections.abc import Iterator
from uuid import UUID

import pytest

from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.search import Degradation, Hit, SearchQuery, SearchResult
from app.evaluation.datasets import document_unit, source_name_of
from app.evaluation.modes import MODES
from app.evaluation.questions import Judgement, Question
from app.evaluation.runner import Conditions, DegradedCount, ModeReport, StageTime, ask, evaluate
from tests.support.aio import run
from tests.support.evaluation import NAMES, ScriptedSearch, hit

OTHER = UUID("00000000-0000-4000-8000-000000000001")
HYBRID = MODES["hybrid"]


def question(text: str, *, collections: tuple[UUID, ...] = ()) -> Question:
    return Question(id=text, text=text, judgements=(Judgement("document:d1"),), collection_ids=collections)


def found(*ids: str, rerank: float | None = None) -> list[Hit]:
    return [hit(source_name_of(id_), index=index, rerank=rerank) for index, id_ in enumerate(ids)]


class Ticking:
    """A clock on which the n-th search takes n seconds."""

    def __init__(self) -> None:
        self._times = self._instants()

    def __call__(self) -> float:
        return next(self._times)

    def _instants(self) -> Iterator[float]:
        now, length = 0.0, 1
        while True:
            yield now
            now += length
            yield now
            length += 1


def test_answers_are_measured_by_document_and_not_by_chunk() -> None:
    search = ScriptedSearch({"a": found("d2", "d2", "d2", "d1"), "b": found("d1")})

    report = run(evaluate(search, [question("a"), question("b")], HYBRID, Conditions(unit_of=document_unit)))

    assert report.questions == 2
    assert report.figures.recall_at_1 == pytest.approx(0.5)
    assert report.figures.mrr_at_10 == pytest.approx((1 / 2 + 1) / 2)
    assert [answer.units for answer in report.answers] == [("document:d2", "document:d1"), ("document:d1",)]


def test_the_search_gets_the_modes_switches_and_the_runs_conditions() -> None:
    search = ScriptedSearch({"a": found("d1")})
    conditions = Conditions(
        unit_of=document_unit, workspace_id=OTHER, collection_ids=(NAMES,), top_k=30, timeout_ms=9_000
    )

    run(evaluate(search, [question("a"), question("b", collections=(OTHER,))], MODES["lexical"], conditions))

    first, second = search.queries
    assert first == SearchQuery(
        text="a",
        workspace_id=OTHER,
        collection_ids=(NAMES,),
        overrides=MODES["lexical"].overrides(top_k=30),
        timeout_ms=9_000,
        door="tool",
    )
    assert second.collection_ids == (OTHER,)


def test_everything_is_searched_in_the_default_workspace_unless_told_otherwise() -> None:
    search = ScriptedSearch({"a": found("d1")})

    report = run(evaluate(search, [question("a")], HYBRID, Conditions(unit_of=document_unit)))

    assert (search.queries[0].workspace_id, search.queries[0].collection_ids) == (DEFAULT_WORKSPACE, ())
    assert report.top_k == 100


def test_latency_is_the_wall_time_of_each_search() -> None:
    search = ScriptedSearch({})
    questions = [question(str(number)) for number in range(20)]

    report = run(evaluate(search, questions, HYBRID, Conditions(unit_of=document_unit), clock=Ticking()))

    assert (report.p50_ms, report.p95_ms) == (10_000, 19_000)


def test_degraded_and_empty_answers_are_counted() -> None:
    timeout = Degradation(stage="rerank", cause="timeout", after_ms=1500)
    search = ScriptedSearch(
        {"a": found("d1"), "b": found("d1")},
        degraded={"a": [timeout], "b": [timeout, Degradation(stage="embed", cause="refused", after_ms=1)]},
    )

    report = run(
        evaluate(search, [question(t) for t in "abc"], MODES["hybrid+rerank"], Conditions(unit_of=document_unit))
    )

    assert (report.degraded, report.no_hits, report.reranked, report.rerank_pool) == (2, 1, 0, 0)
    assert report.degradations == (
        DegradedCount(stage="embed", cause="refused", answers=1),
        DegradedCount(stage="rerank", cause="timeout", answers=2),
    )


def test_reranked_hits_show_how_deep_the_reranker_looked() -> None:
    hits = [*found("d1", "d2", rerank=0.5), *found("d3")]

    report = run(evaluate(ScriptedSearch({"a": hits}), [question("a")], HYBRID, Conditions(unit_of=document_unit)))

    assert (report.reranked, report.rerank_pool) == (1, 2)


def test_the_best_score_of_each_kind_is_kept() -> None:
    hits = [hit("a.txt", cosine=0.7, lexical=3.0), hit("b.txt", cosine=0.9), hit("c.txt")]

    (answer,) = run(ask(ScriptedSearch({"a": hits}), [question("a")], HYBRID, Conditions(unit_of=document_unit)))

    assert (answer.best_cosine, answer.best_lexical, answer.best_rerank) == (0.9, 3.0, None)


def test_stage_times_are_those_that_the_service_tells() -> None:
    search = ScriptedSearch({"a": found("d1")}, timings_ms={"embed": 4.0, "search": 2.0})

    report = run(evaluate(search, [question("a")], HYBRID, Conditions(unit_of=document_unit)))

    assert report.stages == (
        StageTime(stage="embed", p50_ms=4.0, p95_ms=4.0),
        StageTime(stage="search", p50_ms=2.0, p95_ms=2.0),
    )


def test_progress_is_told_after_each_question() -> None:
    told: list[tuple[int, int]] = []

    run(
        evaluate(
            ScriptedSearch({}),
            [question("a"), question("b")],
            HYBRID,
            Conditions(unit_of=document_unit),
            on_progress=lambda done, total: told.append((done, total)),
        )
    )

    assert told == [(1, 2), (2, 2)]


def test_an_unanswerable_question_is_refused_before_anything_is_searched() -> None:
    search = ScriptedSearch({})

    with pytest.raises(InvalidInput, match="'lost' has no relevant unit"):
        run(evaluate(search, [Question(id="lost", text="x")], HYBRID, Conditions(unit_of=document_unit)))

    assert search.queries == []


def test_an_unreachable_index_ends_the_run() -> None:
    class Broken:
        async def search(self, query: SearchQuery) -> SearchResult:
            raise IndexUnavailable("no index", cause="refused")

    with pytest.raises(IndexUnavailable):
        run(evaluate(Broken(), [question("a")], HYBRID, Conditions(unit_of=document_unit)))


def test_a_run_gives_the_same_report_twice() -> None:
    def once() -> ModeReport:
        search = ScriptedSearch({"a": found("d2", "d1"), "b": found("d1")})
        questions = [question("a"), question("b")]
        return run(evaluate(search, questions, HYBRID, Conditions(unit_of=document_unit), clock=Ticking()))

    assert once() == once()
