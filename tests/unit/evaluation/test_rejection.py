from app.evaluation.questions import Answer
from app.evaluation.rejection import Separation, Spread, compare_scores


def answer(*, cosine: float | None = None, rerank: float | None = None, hits: int = 1) -> Answer:
    units = tuple(str(number) for number in range(hits))
    return Answer(question_id="q", units=units, outcome="hits", latency_ms=1.0, best_cosine=cosine, best_rerank=rerank)


def test_scores_that_tell_the_two_apart_have_an_area_of_one() -> None:
    rejection = compare_scores([answer(cosine=0.9), answer(cosine=0.8)], [answer(cosine=0.7)])

    assert rejection is not None
    assert rejection.separations == (
        Separation(
            score="cosine",
            auc=1.0,
            answerable=Spread(answers=2, p5=0.8, p50=0.8, p95=0.9),
            unanswerable=Spread(answers=1, p5=0.7, p50=0.7, p95=0.7),
        ),
    )


def test_an_answer_without_a_score_counts_as_lower_than_all() -> None:
    rejection = compare_scores([answer(rerank=-5.0), answer()], [answer(), answer(hits=0)])

    assert rejection is not None
    (separation,) = rejection.separations
    assert separation.auc == (2 + 2 * 0.5) / 4
    assert separation.answerable == Spread(answers=1, p5=-5.0, p50=-5.0, p95=-5.0)
    assert separation.unanswerable is None


def test_questions_without_hits_are_counted_on_both_sides() -> None:
    rejection = compare_scores(
        [answer(cosine=0.9), answer(hits=0)], [answer(hits=0), answer(hits=0), answer(hits=0), answer(cosine=0.5)]
    )

    assert rejection is not None
    assert (rejection.questions, rejection.no_hits, rejection.answerable_no_hits) == (4, 3, 1)
    assert rejection.still_answered == 0.25


def test_there_is_nothing_to_compare_without_both_sides() -> None:
    assert compare_scores([answer(cosine=0.9)], []) is None
    assert compare_scores([], [answer(cosine=0.9)]) is None
