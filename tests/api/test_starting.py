"""The door while the models load."""

import subprocess
import sys
from pathlib import Path

from app.api.starting import StartingGate
from tests.support.aio import run
from tests.support.api import client_of, open_api


def test_the_gate_is_alive_at_once_and_everything_else_is_to_come_again() -> None:
    async def scenario() -> None:
        async with client_of(StartingGate()) as client:
            live = await client.get("/health/live")
            assert (live.status_code, live.json()) == (200, {"status": "alive"})
            for method, path in (("GET", "/health/ready"), ("POST", "/v1/search"), ("GET", "/nope")):
                response = await client.request(method, path)
                assert response.status_code == 503
                assert response.headers["retry-after"] == "1"
                assert response.headers["content-type"] == "application/problem+json"
                assert response.json()["type"] == "urn:kroshka:problem:starting"
                assert response.json()["instance"] == path
                assert "x-request-id" in response.headers

    run(scenario())


def test_the_gate_is_as_closed_to_strangers_as_the_service() -> None:
    async def scenario() -> None:
        async with client_of(StartingGate(), peer="10.0.0.5") as stranger:
            assert (await stranger.get("/health/live")).status_code == 200
            assert (await stranger.get("/health/ready")).status_code == 503
            assert (await stranger.post("/v1/search")).status_code == 403
        async with client_of(StartingGate(anonymous_search=True), peer="10.0.0.5") as stranger:
            assert (await stranger.post("/v1/search")).status_code == 503

    run(scenario())


def test_the_open_gate_passes_everything_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        gate = StartingGate()
        async with open_api(tmp_path) as api, client_of(gate) as client:
            assert (await client.get("/health/ready")).status_code == 503
            gate.open(api.app)
            assert (await client.get("/health/ready")).status_code == 200
            assert (await client.get("/v1/collections")).json()["items"][0]["name"] == "Docs"

    run(scenario())


def test_the_gate_opens_without_loading_the_framework() -> None:
    code = """
import sys, app.api, app.api.starting
print([name for name in ("litestar", "numpy", "sqlalchemy") if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "[]", ended.stderr
