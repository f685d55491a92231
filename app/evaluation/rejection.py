"""Can the scores tell questions that the corpus answers from those that it does not? Pure."""

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from app.evaluation.measures import area_under_curve, percentile
from app.evaluation.questions import Answer


class Spread(Struct, frozen=True, kw_only=True, rename="camel"):
    """Percentiles of the best score of each answer that has one (`answers` of them)."""

    answers: int
    p5: float
    p50: float
    p95: float


class Separation(Struct, frozen=True, kw_only=True, rename="camel"):
    """One score's power to tell the two apart: `auc` 1 is perfect, 0.5 is chance.

    An answer without such a score (no hit, or none by words) counts as lower than every other.
    """

    score: str
    auc: float
    answerable: Spread | None
    unanswerable: Spread | None


class Rejection(Struct, frozen=True, kw_only=True, rename="camel"):
    """What happened to the questions without an answer. `no_hits` is what a caller would wish all of them to be.

    `still_answered` is the share of them that got hits all the same, 0..1.
    """

    questions: int
    no_hits: int
    still_answered: float
    answerable_no_hits: int
    separations: tuple[Separation, ...]


_SCORES: tuple[tuple[str, Callable[[Answer], float | None]], ...] = (
    ("cosine", lambda answer: answer.best_cosine),
    ("lexical", lambda answer: answer.best_lexical),
    ("rerank", lambda answer: answer.best_rerank),
)


def compare_scores(answerable: Sequence[Answer], unanswerable: Sequence[Answer]) -> Rejection | None:
    """None when one side is empty: there is nothing to compare."""
    if not answerable or not unanswerable:
        return None
    separations = []
    for name, score_of in _SCORES:
        known, unknown = ([score_of(answer) for answer in side] for side in (answerable, unanswerable))
        if any(score is not None for score in known + unknown):
            separations.append(_separation(name, known, unknown))
    no_hits = _without_hits(unanswerable)
    return Rejection(
        questions=len(unanswerable),
        no_hits=no_hits,
        still_answered=round(1 - no_hits / len(unanswerable), 4),
        answerable_no_hits=_without_hits(answerable),
        separations=tuple(separations),
    )


def _separation(name: str, known: Sequence[float | None], unknown: Sequence[float | None]) -> Separation:
    return Separation(
        score=name,
        auc=area_under_curve(_lowest_for_none(known), _lowest_for_none(unknown)),
        answerable=_spread(known),
        unanswerable=_spread(unknown),
    )


def _lowest_for_none(scores: Sequence[float | None]) -> list[float]:
    return [-math.inf if score is None else score for score in scores]


def _spread(scores: Sequence[float | None]) -> Spread | None:
    values = [score for score in scores if score is not None]
    if not values:
        return None
    p5, p50, p95 = (percentile(values, percent) for percent in (5, 50, 95))
    return Spread(answers=len(values), p5=p5, p50=p50, p95=p95)


def _without_hits(answers: Sequence[Answer]) -> int:
    return sum(not answer.units for answer in answers)
