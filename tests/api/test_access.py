"""The edge without keys: this machine only, no pages of other sites, no proxies; headers on every answer."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.aio import run
from tests.support.api import client_of, open_api

FOREIGN = (
    ({"Host": "evil.example"}, "host"),
    ({"Host": "localhost.evil.example"}, "host"),
    ({"Host": "127.0.0.1.nip.io"}, "host"),
    ({"Host": "10.0.0.5:8000"}, "host"),
    ({"Host": "localhost:80:80"}, "host"),
    ({"Host": ""}, "host"),
    ({"Origin": "https://evil.example"}, "origin"),
    ({"Origin": "null"}, "origin"),
    ({"Origin": "https://localhost.evil.example"}, "origin"),
    ({"Origin": "https://localhost@evil.example"}, "origin"),
    ({"Origin": "file://localhost"}, "origin"),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, "origin"),
    ({"X-Forwarded-For": "127.0.0.1"}, "proxy"),
    ({"X-Forwarded-Proto": "https"}, "proxy"),
    ({"Forwarded": "for=127.0.0.1"}, "proxy"),
    ({"Via": "1.1 proxy"}, "proxy"),
)


def test_a_request_that_is_not_of_this_machine_is_refused_and_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            counted: Counter[str] = Counter()
            for headers, reason in FOREIGN:
                problem = await api.problem("POST", "/v1/search", 403, json={"query": "a"}, headers=headers)
                assert problem["type"] == "urn:kroshka:problem:forbidden"
                assert problem["instance"] == "/v1/search"
                assert api.search.queries == [], headers
                counted[reason] += 1
                count = api.services.metrics.registry.get_sample_value("kroshka_auth_refused_total", {"reason": reason})
                assert count == counted[reason], headers

    run(scenario())


def test_every_name_of_this_machine_is_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for host in ("localhost", "LOCALHOST:8000", "127.0.0.1", "127.8.9.1:1", "[::1]:8000", "kroshka.localhost"):
                await api.json("GET", "/v1/collections", headers={"Host": host})
            for origin in ("http://localhost:3000", "http://127.0.0.1", "https://[::1]:8"):
                await api.json("GET", "/v1/collections", headers={"Origin": origin})
            by_link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
            assert (await api.client.get("/docs", headers=by_link)).status_code == 200
            refused = await api.client.post("/v1/search", json={"query": "a"}, headers=by_link)
            assert refused.status_code == 403, "a form of another site"

    run(scenario())


@pytest.mark.parametrize("peer", ["10.0.0.5", "192.168.1.2", "2001:db8::1", "::ffff:10.0.0.5", "not an address"])
def test_another_machine_is_refused_whatever_it_calls_us(tmp_path: Path, peer: str) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api, client_of(api.app, peer=peer) as stranger:
            for path in ("/v1/collections", "/docs", "/openapi.json", "/metrics", "/nope"):
                assert (await stranger.get(path)).status_code == 403
            assert (await stranger.get("/health/live")).status_code == 200

    run(scenario())


def test_strangers_may_search_and_nothing_else_when_the_operator_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        environ = {"KROSHKA_ALLOW_ANONYMOUS": "search"}
        async with open_api(tmp_path, environ=environ) as api, client_of(api.app, peer="10.0.0.5") as stranger:
            assert (await stranger.post("/v1/search", json={"query": "a"})).status_code == 200
            assert (await stranger.get("/v1/collections")).status_code == 200
            refused = {
                "/v1/collections": ("POST", {"name": "a"}),
                f"/v1/collections/{api.collection_id}": ("DELETE", None),
                "/v1/settings/rag": ("PUT", {}),
                "/v1/documents": ("POST", None),
                "/metrics": ("GET", None),
            }
            for path, (method, body) in refused.items():
                response = await stranger.request(method, path, json=body)
                assert (response.status_code, response.json()["type"]) == (403, "urn:kroshka:problem:forbidden")
            assert len((await api.json("GET", "/v1/collections"))["items"]) == 1

    run(scenario())


def test_every_answer_has_a_request_id_and_the_headers_of_the_edge(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for method, path in (
                ("GET", "/health/live"),
                ("GET", "/nope"),
                ("DELETE", "/v1/search"),
                ("POST", "/v1/search"),
            ):
                response = await api.client.request(method, path)
                assert len(response.headers["x-request-id"]) == 32
                assert response.headers["x-content-type-options"] == "nosniff"
                assert response.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
                assert response.headers["cache-control"] == "no-store"
            refused = await api.client.get("/v1/collections", headers={"Host": "evil.example"})
            assert refused.headers["x-content-type-options"] == "nosniff"

    run(scenario())


def test_a_sane_request_id_is_taken_over_and_another_replaced(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:

            async def answered(given: str) -> str:
                response = await api.client.get("/health/live", headers={"X-Request-Id": given})
                return str(response.headers["x-request-id"])

            assert await answered("trace-7:a/b") == "trace-7:a/b"
            for bad in ("a b", "x" * 129, "<script>", ""):
                assert await answered(bad) != bad

    run(scenario())


def test_head_is_get_without_a_body_and_options_tells_the_methods(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            head = await api.client.head("/v1/collections")
            assert (head.status_code, head.content) == (200, b"")
            assert int(head.headers["content-length"]) > 0
            options = await api.client.options("/v1/collections")
            assert options.status_code == 204
            assert set(options.headers["allow"].split(", ")) == {"GET", "OPTIONS", "POST"}

    run(scenario())


def test_a_websocket_is_closed_before_anything_sees_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            sent: list[str] = []

            async def send(message: object) -> None:
                assert isinstance(message, dict)
                sent.append(message["type"])

            async def receive() -> dict[str, str]:
                return {"type": "websocket.connect"}

            scope = {"type": "websocket", "path": "/v1/search", "headers": [(b"host", b"evil.example")]}
            await api.app(scope, receive, send)
            assert sent == ["websocket.close"]

    run(scenario())
