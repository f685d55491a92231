"""`/v1/status`, `/health/…` and `/metrics`."""

import asyncio
from pathlib import Path

from app import __version__
from app.domain.errors import IndexUnavailable, ModelMismatch, StoreUnavailable
from tests.support.aio import run
from tests.support.api import client_of, open_api


async def works() -> None:
    """A part of the service that answers."""


def test_the_status_shows_what_is_stored_loaded_and_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.world.indexed(texts=("one", "two"))
            await api.upload("B.md", b"b")
            status = await api.json("GET", "/v1/status")
            assert status["version"] == __version__
            assert status["counts"] == {"collections": 1, "documents": 2, "chunks": 2, "bytes": 100}
            assert status["points"] == 2
            assert status["index"] == {"engine": "edge", "points": 2, "bytesOnDisk": 4096}
            assert [item["name"] for item in status["byCollection"]] == ["Docs"]
            assert [(item["state"], item["dimension"]) for item in status["generations"]] == [("active", 256)]
            assert status["models"]["embedder"] == "multilingual-e5-small"
            assert status["models"]["weightsSha256"] == "ab12"
            assert status["models"]["rerankerDialect"] == "local"
            assert status["queue"]["queued"] >= 1

    run(scenario())


def test_the_status_goes_without_an_index_that_does_not_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.index.answer = IndexUnavailable("away", cause="refused")
            status = await api.json("GET", "/v1/status")
            assert (status["index"], status["points"]) == (None, None)

    run(scenario())


def test_the_service_is_ready_when_every_part_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, probes={"database": works, "index": works}) as api:
            ready = await api.json("GET", "/health/ready")
            assert ready == {
                "status": "ready",
                "checks": {"database": {"status": "ok", "error": None}, "index": {"status": "ok", "error": None}},
            }

    run(scenario())


def test_a_part_that_fails_makes_the_service_unready_by_its_code(tmp_path: Path) -> None:
    async def database_away() -> None:
        raise StoreUnavailable("password hunter2", cause="refused")

    async def index_of_another_model() -> None:
        raise ModelMismatch("built with another model")

    async def no_such_host() -> None:
        raise OSError("no such host")

    async def scenario() -> None:
        probes = {"a": works, "b": database_away, "c": index_of_another_model, "d": no_such_host}
        async with open_api(tmp_path, probes=probes) as api:
            response = await api.client.get("/health/ready")
            assert response.status_code == 503
            assert response.headers["retry-after"] == "1"
            checks = response.json()["checks"]
            errors = {name: check["error"] for name, check in checks.items()}
            assert errors == {"a": None, "b": "store_unavailable", "c": "model_mismatch", "d": "no_answer"}
            assert "hunter2" not in response.text
            assert await api.json("GET", "/health/live") == {"status": "alive"}

    run(scenario())


def test_readiness_keeps_its_details_from_strangers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, probes={"database": works}) as api, client_of(api.app, peer="10.0.0.9") as other:
            assert (await other.get("/health/ready")).json() == {"status": "ready"}
            assert (await other.get("/health/live")).json() == {"status": "alive"}

    run(scenario())


def test_metrics_count_requests_by_template_and_show_what_is_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload("secret-name.md")
            await api.json("GET", f"/v1/documents/{entry['id']}")
            await api.problem("GET", "/secret-path", 404)
            response = await api.client.get("/metrics")
            assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            lines = response.text.splitlines()
            route = 'method="GET",route="/v1/documents/{document_id}",status="200"'
            assert f"kroshka_http_requests_total{{{route}}} 1.0" in lines
            assert 'kroshka_http_requests_total{method="GET",route="unmatched",status="404"} 1.0' in lines
            assert 'kroshka_documents{state="active"} 1.0' in lines
            assert 'kroshka_index_points{state="active"} 2.0' in lines
            assert 'kroshka_jobs{kind="ingest",state="queued"} 1.0' in lines
            for private in (entry["id"], "secret-name", "secret-path"):
                assert private not in response.text

    run(scenario())


def test_metrics_answer_while_the_database_and_the_index_are_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            api.index.answer = IndexUnavailable("away", cause="refused")
            await api.world.database.aclose()
            response = await asyncio.wait_for(api.client.get("/metrics"), 10)
            assert response.status_code == 200
            assert "kroshka_build_info" in response.text

    run(scenario())


def test_openmetrics_is_given_to_who_asks_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
            response = await api.client.get("/metrics", headers=headers)
            assert response.headers["content-type"].startswith("application/openmetrics-text")
            assert response.text.endswith("# EOF\n")

    run(scenario())
