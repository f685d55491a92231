"""Reading what rerankers answer, in all their forms."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clients.rerank.answers import is_logits, parse_model, parse_scores, sigmoid


def test_teis_array_and_the_wrapped_forms_mean_the_same() -> None:
    forms = [
        [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}],
        {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]},
        {"object": "list", "data": [{"index": 0, "score": 0.1}, {"index": 1, "score": 0.9}], "usage": {}},
        {"results": None, "rankings": [{"index": "1", "score": 0.9}, {"index": 0.0, "score": 0.1}]},
    ]
    for form in forms:
        assert parse_scores(json.dumps(form).encode(), 2) == {0: 0.1, 1: 0.9}


def test_relevance_score_is_stronger_than_score_and_returned_texts_mean_nothing() -> None:
    item = {"index": 0, "relevance_score": 0.7, "score": 12.0, "document": {"text": "other", "index": 5}, "text": "x"}
    assert parse_scores(json.dumps([item]).encode(), 1) == {0: 0.7}


@pytest.mark.parametrize(
    "item",
    [
        '{"index": 0}',
        '{"score": 0.5}',
        '{"index": 0, "score": null}',
        '{"index": 0, "relevance_score": null, "score": 0.5}',
        '{"index": 0, "score": "0.5"}',
        '{"index": 0, "score": true}',
        '{"index": 0, "score": NaN}',
        '{"index": 0, "score": -Infinity}',
        '{"index": 0, "score": 1' + "0" * 400 + "}",
        '{"index": true, "score": 0.5}',
        '{"index": -1, "score": 0.5}',
        '{"index": 2, "score": 0.5}',
        '{"index": 0.5, "score": 0.5}',
        '{"index": NaN, "score": 0.5}',
        '{"index": Infinity, "score": 0.5}',
        '{"index": "1_0", "score": 0.5}',
        '{"index": "\\u0661", "score": 0.5}',
        "null",
        "3",
        "[]",
    ],
)
def test_items_without_a_valid_index_or_a_finite_score_are_dropped_and_the_others_kept(item: str) -> None:
    body = f'[{item}, {{"index": 1, "score": 0.25}}]'
    assert parse_scores(body.encode(), 2) == {1: 0.25}


def test_the_first_of_several_scores_for_one_text_counts() -> None:
    assert parse_scores(b'[{"index": 0, "score": 0.3}, {"index": 0, "score": 0.9}]', 1) == {0: 0.3}


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{}", b'"text"', b"<html>", b'{"results": null}', b'{"results": {}}', b"\xff\xfe", b"[" * 99_999],
)
def test_an_answer_of_another_kind_holds_no_scores(body: bytes) -> None:
    assert parse_scores(body, 3) == {}
    assert parse_model(body) == ""


def test_the_model_is_read_where_it_is_named() -> None:
    assert parse_model(b'{"model": "jina-reranker-v2", "results": []}') == "jina-reranker-v2"
    assert parse_model(b'{"model": 3}') == ""


@pytest.mark.parametrize(
    ("scores", "expected"), [([0.0, 1.0], False), ([], False), ([1.0004], False), ([-0.5, 0.5], True), ([5.26], True)]
)
def test_scores_outside_of_zero_and_one_are_logits(scores: list[float], expected: bool) -> None:
    assert is_logits(scores) is expected


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_sigmoid_keeps_the_order_and_the_bounds(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert 0.0 <= sigmoid(low) <= sigmoid(high) <= 1.0


def test_sigmoid_gives_the_references_scores_for_its_logits() -> None:
    """bge-reranker-v2-m3's published pairs."""
    for logit, score in ((-5.652, 0.0035), (-8.1875, 0.00028), (5.2617, 0.9948)):
        assert math.isclose(sigmoid(logit), score, rel_tol=0.02)
