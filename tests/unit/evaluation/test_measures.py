import math

import pytest

from app.domain.errors import InvalidInput
from app.evaluation.measures import Figures, area_under_curve, measure, percentile
from app.evaluation.questions import Answer, Judgement, Question, collapse


def question(id_: str, **grades: int) -> Question:
    return Question(id=id_, text=id_, judgements=tuple(Judgement(unit, grade) for unit, grade in grades.items()))


def answer(*units: str) -> Answer:
    return Answer(question_id="q", units=units, outcome="hits" if units else "no_results", latency_ms=1.0)


def fillers(count: int) -> tuple[str, ...]:
    return tuple(f"filler{number}" for number in range(count))


def test_measures_match_a_case_worked_out_by_hand() -> None:
    """Grades a 3, b 1; order x, b, a: DCG = 1/log2(3) + 3/log2(4), ideal = 3/log2(2) + 1/log2(3)."""
    figures = measure([question("q", a=3, b=1, c=0)], [answer("x", "b", "a")])

    assert figures.recall_at_1 == 0
    assert figures.recall_at_5 == 1
    assert figures.success_at_1 == 0
    assert figures.mrr_at_10 == pytest.approx(1 / 2)
    assert figures.ndcg_at_10 == pytest.approx((1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3)), abs=1e-6)


def test_measures_are_means_over_the_questions() -> None:
    questions = [question("1", a=1), question("2", a=1), question("3", a=1), question("4", a=1, b=1)]
    answers = [answer("a"), answer("x", "y", "z", "a"), answer(), answer("b", "a")]

    figures = measure(questions, answers)

    assert figures.recall_at_1 == pytest.approx((1 + 0 + 0 + 0.5) / 4)
    assert figures.success_at_1 == pytest.approx(2 / 4)
    assert figures.recall_at_5 == pytest.approx(3 / 4)
    assert figures.mrr_at_10 == pytest.approx((1 + 1 / 4 + 0 + 1) / 4)


def test_questions_with_one_id_are_still_two_questions() -> None:
    assert measure([question("q", a=1), question("q", a=1)], [answer("a"), answer()]).recall_at_1 == pytest.approx(0.5)


@pytest.mark.parametrize(("rank", "expected"), [(10, 0.1), (11, 0.0)])
def test_the_reciprocal_rank_ends_at_rank_ten(rank: int, expected: float) -> None:
    assert measure([question("q", a=1)], [answer(*fillers(rank - 1), "a")]).mrr_at_10 == pytest.approx(expected)


def test_each_depth_of_recall_ends_where_it_says() -> None:
    def recalls(rank: int) -> tuple[float, ...]:
        figures = measure([question("q", a=1)], [answer(*fillers(rank - 1), "a")])
        return figures.recall_at_1, figures.recall_at_5, figures.recall_at_10, figures.recall_at_20

    assert recalls(1) == (1, 1, 1, 1)
    assert recalls(5) == (0, 1, 1, 1)
    assert recalls(10) == (0, 0, 1, 1)
    assert recalls(20) == (0, 0, 0, 1)
    assert recalls(21) == (0, 0, 0, 0)


@pytest.mark.parametrize("order", [("a", "z"), ("z", "a")])
def test_the_order_of_the_hits_decides_and_not_their_ids(order: tuple[str, str]) -> None:
    assert measure([question("q", a=1)], [answer(*order)]).success_at_1 == float(order[0] == "a")


def test_many_chunks_of_one_document_take_one_rank() -> None:
    units = collapse(["x", "x", "x", "a", "x", "a"])

    assert units == ("x", "a")
    assert measure([question("q", a=1)], [answer(*units)]).mrr_at_10 == pytest.approx(0.5)


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one answerable question"):
        measure([], [])


@pytest.mark.parametrize("unanswerable", [question("lost"), question("lost", a=0)])
def test_a_question_that_nothing_answers_is_refused_by_its_id(unanswerable: Question) -> None:
    with pytest.raises(InvalidInput, match="'lost' has no relevant unit"):
        measure([question("q", a=1), unanswerable], [answer("a"), answer("a")])


def test_rounding_keeps_every_figure() -> None:
    figures = measure([question(str(n), a=1) for n in range(3)], [answer("a"), answer("x", "a"), answer()])

    assert figures.rounded(2) == Figures(
        recall_at_1=0.33,
        recall_at_5=0.67,
        recall_at_10=0.67,
        recall_at_20=0.67,
        success_at_1=0.33,
        mrr_at_10=0.5,
        ndcg_at_10=0.54,
    )


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (95, 10), (90, 9), (91, 10), (0, 1), (100, 10)])
def test_percentiles_are_values_that_were_observed(percent: float, expected: float) -> None:
    assert percentile([float(value) for value in (10, 9, 8, 7, 6, 5, 4, 3, 2, 1)], percent) == expected


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput):
        percentile([], 50)


@pytest.mark.parametrize(
    ("positives", "negatives", "expected"),
    [
        ([3.0, 2.0], [1.0, 0.0], 1.0),
        ([0.0], [1.0], 0.0),
        ([1.0, 1.0], [1.0], 0.5),
        ([3.0, 1.0], [2.0, 1.0], (1 + 1 + 0 + 0.5) / 4),
        ([1.0], [-math.inf], 1.0),
    ],
)
def test_the_area_under_the_curve_counts_pairs(positives: list[float], negatives: list[float], expected: float) -> None:
    assert area_under_curve(positives, negatives) == pytest.approx(expected)


def test_the_area_under_the_curve_needs_both_sides() -> None:
    with pytest.raises(InvalidInput):
        area_under_curve([1.0], [])
