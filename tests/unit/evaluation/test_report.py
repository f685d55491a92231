import json

import msgspec
import pytest

from app.domain.errors import InvalidInput
from app.domain.search import Degradation, Hit
from app.evaluation.golden import KindFigures
from app.evaluation.modes import MODES
from app.evaluation.questions import Judgement, Question
from app.evaluation.rejection import compare_scores
from app.evaluation.report import (
    COLUMNS,
    Indexing,
    LoadView,
    ModelView,
    evaluation_view,
    golden_view,
    remarks,
    table_rows,
)
from app.evaluation.runner import Conditions, ModeReport, evaluate
from tests.support.aio import run
from tests.support.evaluation import ScriptedSearch, hit

EMBEDDER = ModelView(id="hash-256", weights_sha256=None)


def name_unit(question: Question, found: Hit) -> str:
    return found.source_name


def report(mode: str = "hybrid", *, degraded: bool = False) -> ModeReport:
    """Three questions: found first, found second, nothing found."""
    lost = {"a": [Degradation(stage="rerank", cause="timeout", after_ms=1)]} if degraded else {}
    search = ScriptedSearch(
        {"a": [hit("right.md")], "b": [hit("wrong.md"), hit("right.md")]}, degraded=lost, timings_ms={"search": 2.0}
    )
    questions = [Question(id=text, text=text, judgements=(Judgement("right.md"),)) for text in "abc"]
    instants = iter([0.0, 0.001, 1.0, 1.00256, 2.0, 2.004])
    return run(evaluate(search, questions, MODES[mode], Conditions(unit_of=name_unit), clock=lambda: next(instants)))


def test_the_json_has_the_documented_names() -> None:
    view = evaluation_view(
        "rivers",
        [report("hybrid"), report("dense")],
        indexing=Indexing(documents=3, passages=12, index_s=4.0),
        embedder=EMBEDDER,
        reranker=None,
        while_indexing=LoadView(searches=5, p50_ms=20.0, p95_ms=30.0),
    )

    printed = json.loads(msgspec.json.encode(view))

    assert list(printed["modes"]) == ["hybrid", "dense"]
    assert printed["modes"]["hybrid"] == {
        "recall@1": 0.3333,
        "recall@5": 0.6667,
        "recall@10": 0.6667,
        "recall@20": 0.6667,
        "success@1": 0.3333,
        "mrr@10": 0.5,
        "ndcg@10": 0.5436,
        "p50Ms": 2.6,
        "p95Ms": 4.0,
        "topK": 100,
        "rerankPool": 0,
        "reranked": 0,
        "degraded": 0,
        "degradations": [],
        "noHits": 1,
        "stages": [{"stage": "search", "p50Ms": 2.0, "p95Ms": 2.0}],
    }
    del printed["modes"]
    assert printed == {
        "dataset": "rivers",
        "queries": 3,
        "documents": 3,
        "passages": 12,
        "indexSeconds": 4.0,
        "passagesPerSecond": 3.0,
        "searchWhileIndexing": {"searches": 5, "p50Ms": 20.0, "p95Ms": 30.0},
        "embedder": {"id": "hash-256", "weightsSha256": None},
        "reranker": None,
    }


def test_no_speed_is_given_where_nothing_was_indexed() -> None:
    view = evaluation_view(
        "rivers", [report()], indexing=Indexing(documents=3, passages=12), embedder=EMBEDDER, reranker=None
    )

    assert (view.index_seconds, view.passages_per_second) == (None, None)


def test_the_speed_counts_only_what_this_run_embedded() -> None:
    assert Indexing(documents=3, passages=12, index_s=2.0, new_passages=4).passages_per_s == 2.0


def test_a_view_without_any_mode_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one mode"):
        evaluation_view("rivers", [], indexing=Indexing(documents=3, passages=12), embedder=EMBEDDER, reranker=None)


def test_a_row_has_a_cell_for_each_column() -> None:
    (row,) = table_rows([report()])

    assert dict(zip(COLUMNS, row, strict=True)) == {
        "mode": "hybrid",
        "recall@1": "0.333",
        "recall@5": "0.667",
        "MRR@10": "0.500",
        "nDCG@10": "0.544",
        "p50 ms": "2.6",
        "p95 ms": "4.0",
    }


def test_remarks_tell_what_would_mislead() -> None:
    assert remarks([report("hybrid+rerank", degraded=True)]) == [
        "hybrid+rerank: no answer was reranked, the figures are those of the fused order.",
        "hybrid+rerank: 1 of 3 answers went without rerank (timeout).",
        "hybrid+rerank: 1 of 3 questions found nothing.",
    ]


def test_the_golden_view_holds_kinds_and_rejection() -> None:
    measured = report()
    kinds = [KindFigures(kind="paraphrase", questions=3, figures=measured.figures)]
    view = golden_view(measured, kinds, compare_scores(measured.answers[:2], measured.answers[2:]))

    printed = json.loads(msgspec.json.encode(view))

    assert printed["kinds"][0]["figures"]["recall@1"] == 0.3333
    assert printed["rejection"] == {
        "questions": 1,
        "noHits": 1,
        "stillAnswered": 0.0,
        "answerableNoHits": 0,
        "separations": [],
    }
    assert (printed["mode"], printed["queries"], printed["figures"]["mrr@10"]) == ("hybrid", 3, 0.5)
