"""The small pure parts of the HTTP client."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clients.http import Refusal, Retries, base_url, clean_text, error_type


@given(st.integers(1, 10_000))
def test_waits_have_full_jitter_below_a_cap_also_after_many_attempts(attempt: int) -> None:
    retries = Retries(base_s=0.1, max_s=2.0)
    assert 0.0 <= retries.delay_s(attempt, random.Random(attempt)) <= min(2.0, 0.1 * 2 ** min(attempt - 1, 16))


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://tei:80", "http://tei:80"),
        (" http://tei/ ", "http://tei"),
        ("http://tei/v1", "http://tei"),
        ("http://tei/rerank", "http://tei"),
        ("http://tei/v1/rerank/", "http://tei"),
        ("http://gateway/models/v1/rerank", "http://gateway/models"),
        ("http://gateway/rerank-service", "http://gateway/rerank-service"),
    ],
)
def test_the_base_address_has_no_routes(url: str, bare: str) -> None:
    assert base_url(url, "/rerank") == bare


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": "x", "error_type": "Validation"}', "validation"),
        (b'{"error": "x", "error_type": "overloaded"}', "overloaded"),
        (b'{"message": "x", "code": 413, "type": "Validation"}', "validation"),
        (b'{"error": {"type": "BadRequestError"}}', ""),
        (b'{"error_type": "private words"}', ""),
        (b'{"error_type": 3}', ""),
        (b'"text"', ""),
        (b"", ""),
        (b"[" * 99_999, ""),
    ],
)
def test_only_teis_own_error_types_are_taken_over(body: bytes, kind: str) -> None:
    assert error_type(body) == kind


@given(st.text())
def test_a_text_without_lone_surrogates_is_left_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@given(st.text(st.characters(categories=["Cs", "Lu", "So"])))
def test_lone_surrogates_become_characters_that_can_be_sent(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert [c for c in cleaned if c != "\ufffd" and ord(c) < 0xD800] == [c for c in text if ord(c) < 0xD800]


@pytest.mark.parametrize(("status", "cause"), [(401, "status_4xx"), (501, "status_5xx"), (301, "bad_answer")])
def test_a_refusals_cause_is_of_the_closed_set(status: int, cause: str) -> None:
    assert Refusal("refused", status=status).cause == cause
