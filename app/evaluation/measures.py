"""How good a ranking is, and how long it took. Pure."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from statistics import fmean

import pytrec_eval
from msgspec import Struct
from msgspec.structs import asdict

from app.domain.errors import InvalidInput
from app.evaluation.questions import Answer, Question

MRR_DEPTH = 10
_WHOLE_RUN = ("recall.1,5,10,20", "success.1", "ndcg_cut.10")


FIGURE_NAMES = {
    "recall_at_1": "recall@1",
    "recall_at_5": "recall@5",
    "recall_at_10": "recall@10",
    "recall_at_20": "recall@20",
    "success_at_1": "success@1",
    "mrr_at_10": "mrr@10",
    "ndcg_at_10": "ndcg@10",
}
"""As the field writes them, in JSON too."""


class Figures(Struct, frozen=True, kw_only=True, rename=FIGURE_NAMES):
    """Means over all questions, 0..1.

    `recall_at_k` is the share of a question's relevant units among its first k, `success_at_1` the share of questions
    with a relevant unit in the first place (the same where each question has one relevant unit), `mrr_at_10` the mean
    of 1 / rank of the first relevant unit (0 beyond rank 10), `ndcg_at_10` uses the grades (linear gain).
    """

    recall_at_1: float
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    success_at_1: float
    mrr_at_10: float
    ndcg_at_10: float

    def rounded(self, digits: int) -> "Figures":
        return Figures(**{name: round(value, digits) for name, value in asdict(self).items()})


def measure(questions: Sequence[Question], answers: Sequence[Answer]) -> Figures:
    """trec_eval's measures of the answers to these questions (in the same order; all must be answerable).

    A question without any hit counts as 0 everywhere. Raises InvalidInput when there is nothing to measure.
    """
    check_answerable(questions)
    relevance: dict[str, dict[str, int]] = {}
    run: dict[str, tuple[str, ...]] = {}
    for place, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        key = str(place)
        relevance[key] = {judgement.unit: judgement.grade for judgement in question.judgements}
        run[key] = answer.units
    whole = _evaluate(relevance, run, _WHOLE_RUN)
    # trec_eval knows no depth for reciprocal rank: the run itself is cut.
    cut = _evaluate(relevance, {key: units[:MRR_DEPTH] for key, units in run.items()}, ("recip_rank",))
    return Figures(
        recall_at_1=whole["recall_1"],
        recall_at_5=whole["recall_5"],
        recall_at_10=whole["recall_10"],
        recall_at_20=whole["recall_20"],
        success_at_1=whole["success_1"],
        mrr_at_10=cut["recip_rank"],
        ndcg_at_10=whole["ndcg_cut_10"],
    )


def check_answerable(questions: Sequence[Question]) -> None:
    """Raises InvalidInput without any question, or with one that nothing answers: its measures are not defined."""
    if not questions:
        raise InvalidInput("questions", "at least one answerable question is needed", limit=1)
    for question in questions:
        if not question.is_answerable:
            raise InvalidInput("questions", f"question {question.id!r} has no relevant unit: nothing to measure")


def _evaluate(
    relevance: dict[str, dict[str, int]], run: dict[str, tuple[str, ...]], measures: Sequence[str]
) -> dict[str, float]:
    """Means over the queries. trec_eval sorts by score, ties by id; falling ranks as scores keep our own order."""
    scores = {key: {unit: float(len(units) - place) for place, unit in enumerate(units)} for key, units in run.items()}
    by_query = pytrec_eval.RelevanceEvaluator(relevance, set(measures)).evaluate(scores)
    names = next(iter(by_query.values())).keys()
    return {name: fmean(row[name] for row in by_query.values()) for name in names}


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile: the smallest value with at least `percent` % of all values at or below it."""
    if not values:
        raise InvalidInput("values", "a percentile needs at least one value", limit=1)
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Area under the ROC curve: how often a positive is above a negative, ties counting half (Mann and Whitney, 1947).

    0.5 tells the two apart no better than chance. Raises InvalidInput when one side is empty.
    """
    if not positives or not negatives:
        raise InvalidInput("scores", "both sides need at least one score", limit=1)
    ordered = sorted(negatives)
    wins = sum((bisect_left(ordered, score) + bisect_right(ordered, score)) / 2 for score in positives)
    return wins / (len(positives) * len(negatives))
