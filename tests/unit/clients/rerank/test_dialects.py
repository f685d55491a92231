"""What is asked in each dialect, and what counts as not being understood."""

import json

import pytest

from app.clients.http import Refusal, error_type
from app.clients.rerank.dialects import COHERE, DIALECTS, JINA, TEI, TEI_V1, Dialect, is_dialect_signal, request_body


def refusal(status: int, body: str) -> Refusal:
    return Refusal("refused", status=status, kind=error_type(body.encode()), body=body)


def test_tei_is_asked_for_probabilities_and_to_cut_what_is_too_long() -> None:
    assert json.loads(request_body(TEI, "q", ["a", "b"], "m")) == {
        "query": "q",
        "texts": ["a", "b"],
        "model": "m",
        "raw_scores": False,
        "truncate": True,
    }


@pytest.mark.parametrize("dialect", [TEI_V1, JINA])
def test_the_others_are_asked_for_all_documents_and_not_to_send_them_back(dialect: Dialect) -> None:
    assert json.loads(request_body(dialect, "q", ["a", "b"], None)) == {
        "query": "q",
        "documents": ["a", "b"],
        "top_n": 2,
        "return_documents": False,
    }


def test_coheres_second_version_does_not_know_return_documents() -> None:
    assert json.loads(request_body(COHERE, "q", ["a"], "m")) == {
        "query": "q",
        "documents": ["a"],
        "model": "m",
        "top_n": 1,
    }


def test_no_dialect_sends_texts_and_documents_at_once() -> None:
    for dialect in DIALECTS:
        assert len({"texts", "documents"} & json.loads(request_body(dialect, "q", ["a"], None)).keys()) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, ""),
        (405, ""),
        (422, "Failed to deserialize the JSON body into the target type: missing field `texts`"),
        (422, '{"detail": [{"loc": ["body", "documents"], "msg": "Field required", "type": "missing"}]}'),
        (400, '{"error": {"message": "documents is required", "type": "BadRequestError", "code": 400}}'),
        (422, '"top_n, documents"'),
    ],
)
def test_unknown_routes_and_unknown_fields_are_about_the_dialect(status: int, body: str) -> None:
    assert is_dialect_signal(refusal(status, body))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, ""),
        (403, "documents"),
        (413, "length limit exceeded"),
        (413, '{"error": "batch size 33 > 32", "error_type": "Validation"}'),
        (422, '{"error": "`texts` must have less than 512 tokens", "error_type": "Validation"}'),
        (400, '{"error": "`texts` cannot be empty", "error_type": "Empty"}'),
        (400, '{"error": {"message": "maximum context length is 8192 tokens"}}'),
        (424, '{"error": "Backend error", "error_type": "Backend"}'),
    ],
)
def test_keys_sizes_and_faults_of_texts_are_not_about_the_dialect(status: int, body: str) -> None:
    assert not is_dialect_signal(refusal(status, body))
