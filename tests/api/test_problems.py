"""Every error is application/problem+json that names what is wrong."""

from pathlib import Path

from app.domain.errors import (
    DeadlineExceeded,
    EmbedderUnavailable,
    IndexUnavailable,
    ModelMismatch,
    UpstreamRefused,
)
from tests.support.aio import run
from tests.support.api import open_api

JSON = {"Content-Type": "application/json"}


def test_an_unknown_address_is_a_problem(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for path in (
                "/",
                "/nope",
                "/v1",
                "/v1/collections/not-an-id",
                "/v1/documents/7",
                "/docs/assets/index.html",
            ):
                problem = await api.problem("GET", path, 404)
                assert problem["type"] == "urn:kroshka:problem:not_found"
                assert problem["instance"] == path

    run(scenario())


def test_a_method_that_an_address_does_not_take_is_a_problem_that_says_which_it_takes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            response = await api.client.delete("/v1/search")
            assert response.status_code == 405
            assert response.headers["content-type"] == "application/problem+json"
            assert set(response.headers["allow"].split(", ")) == {"POST", "OPTIONS"}
            assert "POST" in response.json()["detail"]

    run(scenario())


BAD_BODIES = (
    ("POST", "/v1/collections", {}, "/name", None),
    ("POST", "/v1/collections", {"name": ""}, "/name", 1),
    ("POST", "/v1/collections", {"name": "x" * 201}, "/name", 200),
    ("POST", "/v1/collections", {"name": 5}, "/name", None),
    ("POST", "/v1/collections", {"name": "a", "colour": "red"}, "/colour", None),
    ("POST", "/v1/collections", {"name": "a", "description": "x" * 2_001}, "/description", 2_000),
    ("POST", "/v1/collections", ["a"], "", None),
    ("POST", "/v1/search", {"query": "a", "topK": 201}, "/topK", 200),
    ("POST", "/v1/search", {"query": "a", "topK": 0}, "/topK", 1),
    ("POST", "/v1/search", {"query": "a", "topK": "4"}, "/topK", None),
    ("POST", "/v1/search", {"query": "a", "topK": True}, "/topK", None),
    ("POST", "/v1/search", {"query": "a", "minScore": 1.5}, "/minScore", 1),
    ("POST", "/v1/search", {"query": "x" * 100_001}, "/query", 100_000),
    ("POST", "/v1/search", {"query": "a", "collectionIds": ["x"]}, "/collectionIds/0", None),
    ("POST", "/v1/search", {"query": "a", "top_k": 4}, "/top_k", None),
    ("POST", "/v1/search/batch", {"searches": []}, "/searches", 1),
    ("POST", "/v1/search/batch", {"searches": [{"query": "a"}] * 33}, "/searches", 32),
    ("POST", "/v1/search/batch", {"searches": [{"query": "a"}, {"query": "a", "topK": 0}]}, "/searches/1/topK", 1),
    ("PUT", "/v1/settings/rag", {"searchTopK": 500}, "/searchTopK", "1..200"),
    ("PUT", "/v1/settings/rag", [], "", None),
)


def test_a_bad_body_is_refused_with_the_field_and_its_bound(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for method, path, body, pointer, limit in BAD_BODIES:
                problem = await api.problem(method, path, 422, json=body)
                found = [(error["pointer"], error.get("limit")) for error in problem["errors"]]
                assert found == [(pointer, limit)], (path, body)
                assert problem["errors"][0]["message"] in problem["detail"]

    run(scenario())


BAD_PARAMETERS = (
    ("/v1/collections?limit=0", "limit", 1),
    ("/v1/collections?limit=201", "limit", 200),
    ("/v1/collections?limit=many", "limit", None),
    ("/v1/collections?limit=1&limit=2", "limit", None),
    ("/v1/collections?cursor=zz", "cursor", None),
    ("/v1/collections?page=2", "page", None),
    ("/v1/documents?status=ready", "status", None),
    ("/v1/documents?collectionId=7", "collectionId", None),
    ("/v1/documents?collection_id=7", "collection_id", None),
    ("/v1/documents?cursor=WyJhIl0", "cursor", None),
    (f"/v1/documents?q={'x' * 501}", "q", 500),
    ("/v1/jobs?state=lost", "state", None),
    ("/v1/settings/rag?workspaceId=me", "workspaceId", None),
    ("/health/live?verbose=1", "verbose", None),
)


def test_a_bad_parameter_is_refused_by_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for path, name, limit in BAD_PARAMETERS:
                problem = await api.problem("GET", path, 422)
                found = [(error["pointer"], error.get("limit")) for error in problem["errors"]]
                assert found == [(name, limit)], path

    run(scenario())


NO_JSON = (b"{", b"nonsense", b"{'name': 'a'}", b'{"name": "\xff"}', b'{"name": NaN}', b'{"name": "\\ud800"}')


def test_a_body_that_is_no_json_is_malformed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for body in NO_JSON:
                problem = await api.problem("POST", "/v1/collections", 400, content=body, headers=JSON)
                assert problem["type"] == "urn:kroshka:problem:malformed_body"

    run(scenario())


def test_json_that_is_nested_too_deeply_is_malformed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            body = b'{"a":' * 100_000
            problem = await api.problem("PUT", "/v1/settings/rag", 400, content=body, headers=JSON)
            assert "nested" in problem["detail"]

    run(scenario())


def test_a_number_out_of_range_is_refused_where_the_parser_does_not_tell_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            body = b'{"searchTopK": 1e400}'
            problem = await api.problem("PUT", "/v1/settings/rag", 422, content=body, headers=JSON)
            assert problem["errors"] == [{"pointer": "", "message": "Number out of range"}]

    run(scenario())


def test_a_body_of_another_content_type_is_not_guessed_at(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
                headers = {"Content-Type": content_type}
                problem = await api.problem("POST", "/v1/search", 415, content=b'{"query": "a"}', headers=headers)
                assert "application/json" in problem["detail"]
            good = {"Content-Type": "application/vnd.kroshka+json; charset=utf-8"}
            await api.json("POST", "/v1/search", content=b'{"query": "a"}', headers=good)

    run(scenario())


def test_a_body_is_required_where_one_is_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for method, path in (("POST", "/v1/search"), ("POST", "/v1/collections"), ("PUT", "/v1/settings/rag")):
                problem = await api.problem(method, path, 422)
                assert problem["detail"] == "a JSON body is required"

    run(scenario())


def test_a_body_that_is_too_large_is_refused_with_the_limit_and_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            problem = await api.problem("POST", "/v1/search", 413, content=b"x" * 8_000_001, headers=JSON)
            assert problem["errors"][0]["limit"] == 8_000_000
            assert api.services.metrics.registry.get_sample_value("kroshka_limited_total", {"reason": "body"}) == 1

    run(scenario())


ERRORS = (
    (IndexUnavailable("the index is away", cause="refused", retry_after_s=2.5), 503, "index_unavailable", "3"),
    (EmbedderUnavailable("no vectors", cause="timeout"), 503, "embedder_unavailable", "1"),
    (DeadlineExceeded("no time left for search"), 503, "deadline_exceeded", "1"),
    (UpstreamRefused("the reranker says no", cause="status_4xx"), 502, "upstream_refused", None),
    (ModelMismatch("built with another model"), 500, "model_mismatch", None),
)


def test_errors_of_the_service_keep_their_code_and_say_when_to_come_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for error, status, code, come_again in ERRORS:
                api.search.result = error
                response = await api.client.post("/v1/search", json={"query": "a"})
                assert response.status_code == status, error
                assert response.json()["type"] == f"urn:kroshka:problem:{code}"
                assert response.headers.get("retry-after") == come_again

    run(scenario())


def test_an_error_that_nobody_foresaw_tells_the_caller_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.search.result = RuntimeError("password hunter2")
            response = await api.client.post("/v1/search", json={"query": "a"}, headers={"X-Request-Id": "r-1"})
            assert response.status_code == 500
            assert response.headers["content-type"] == "application/problem+json"
            assert response.headers["x-request-id"] == "r-1"
            assert "hunter2" not in response.text
            assert response.json()["type"] == "urn:kroshka:problem:internal"

    run(scenario())
