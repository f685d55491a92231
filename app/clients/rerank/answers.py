"""From a reranker's answer to scores in the texts' order. Pure.

Servers differ in the wrapping, in names, in order, in what they leave out and in the scale; texts that come back are
never used to find the candidate.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from app.clients.http import json_value

_WRAPPINGS = ("results", "data", "rankings")
_ROUNDING = 1e-3  # a sigmoid in half precision may end a little above 1


def parse_scores(body: bytes, count: int) -> dict[int, float]:
    """Finite scores by index below `count`; the first of several for one index. Empty when nothing is usable."""
    scores = dict[int, float]()
    for item in _items(json_value(body)):
        if not isinstance(item, dict):
            continue
        index, score = _index(item.get("index")), _score(item)
        if index is not None and index < count and score is not None:
            scores.setdefault(index, score)
    return scores


def parse_model(body: bytes) -> str:
    """The model that the answer names; empty when it names none."""
    value = json_value(body)
    model = cast("dict[str, Any]", value).get("model") if isinstance(value, dict) else None
    return model if isinstance(model, str) else ""


def is_logits(scores: Sequence[float]) -> bool:
    """Whether any score cannot be a probability: then all of the same answer are taken for logits."""
    return any(not -_ROUNDING <= score <= 1.0 + _ROUNDING for score in scores)


def sigmoid(logit: float) -> float:
    """In float64 and without overflow, for large logits of either sign."""
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    grown = math.exp(logit)
    return grown / (1.0 + grown)


def _items(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return next((value[name] for name in _WRAPPINGS if isinstance(value.get(name), list)), [])
    return []


def _index(value: object) -> int | None:
    """Whole and not negative; some servers write it as a string or as a float."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value % 1 == 0 else None


def _score(item: Mapping[str, Any]) -> float | None:
    value = item.get("relevance_score", item.get("score"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        score = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return score if math.isfinite(score) else None
