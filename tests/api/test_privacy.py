"""Words of documents, queries and names appear in answers to their owners and nowhere else."""

from pathlib import Path

from tests.support.aio import run
from tests.support.api import open_api
from tests.support.logging import captured_logs

CANARY = "hunter2крошка"


def test_neither_logs_nor_metrics_hold_what_people_wrote(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with open_api(tmp_path) as api:
            entry = await api.upload(f"{CANARY}.md", CANARY.encode(), description=CANARY)
            await api.json("GET", f"/v1/documents/{entry['id']}")
            await api.json("GET", "/v1/documents", params={"q": CANARY})
            await api.json("POST", "/v1/collections", status=201, json={"name": CANARY})
            await api.problem("POST", "/v1/collections", 409, json={"name": CANARY})
            await api.json("POST", "/v1/search", json={"query": CANARY})
            await api.problem("POST", "/v1/search", 422, json={"query": CANARY, CANARY: 1})
            await api.problem("GET", f"/v1/{CANARY}", 404)
            await api.client.get(
                "/v1/collections", headers={"Host": f"{CANARY.encode('ascii', 'ignore').decode()}.example"}
            )
            api.search.result = RuntimeError(CANARY)
            await api.problem("POST", "/v1/search", 500, json={"query": CANARY})
            return (await api.client.get("/metrics")).text

    with captured_logs("debug") as logged:
        metrics = run(scenario())

    assert len(logged.lines("http_request")) >= 10
    assert [line["exception"] for line in logged.lines("request_failed")] == ["RuntimeError"]
    assert all(line["request_id"] for line in logged.lines("http_request"))
    for text in (logged.text, metrics):
        assert "hunter2" not in text
        assert "крошка" not in text


def test_an_access_line_has_the_template_and_not_the_path(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            await api.client.get(f"/v1/documents/{entry['id']}", headers={"X-Request-Id": "r-7"})
            return str(entry["id"])

    with captured_logs() as logged:
        document_id = run(scenario())

    line = logged.lines("http_request")[-1]
    assert (line["route"], line["method"], line["status"], line["request_id"]) == (
        "/v1/documents/{document_id}",
        "GET",
        200,
        "r-7",
    )
    assert line["ms"] >= 0
    assert document_id not in logged.text
