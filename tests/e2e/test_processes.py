"""Kroshka from outside: several processes on one data folder, kills, restarts."""

import json
import time
from pathlib import Path

import httpx
import pytest

from tests.support.service import all_documents, kroshka, running_server, start, stop, wait_ready

WORDS = ("линия", "абонент", "проверка", "router", "signal", "диагностика", "баланс", "port")


def write_documents(folder: Path, count: int, sections: int = 3) -> None:
    folder.mkdir()
    for number in range(count):
        body = "\n\n".join(
            f"## Раздел {section}\n\nДокумент {number}, раздел {section}: " + " ".join(WORDS) * 6 + "."
            for section in range(sections)
        )
        (folder / f"doc-{number:03}.md").write_text(f"# Документ {number}\n\n{body}\n", encoding="utf-8")


def wait_all_indexed(url: str, count: int, timeout_s: float = 90) -> list[dict[str, object]]:
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        documents = all_documents(url)
        if len(documents) == count and all(document["status"] == "indexed" for document in documents):
            return documents
        time.sleep(0.2)
    raise AssertionError(f"not indexed: {[(d['sourceName'], d['status']) for d in all_documents(url)]}")


def test_a_server_killed_in_the_middle_of_an_ingest_goes_on_and_every_document_is_there_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data, log, count = tmp_path / "data", tmp_path / "log", 40
    write_documents(tmp_path / "docs", count)
    server = start("serve", "--port", "0", data=data, log=log)
    try:
        url = wait_ready(data, server, log)
        made = httpx.post(f"{url}/v1/collections", json={"name": "c"}, timeout=30).raise_for_status().json()
        for path in sorted((tmp_path / "docs").iterdir()):
            files = {"file": (path.name, path.read_bytes(), "text/markdown")}
            httpx.post(f"{url}/v1/documents", params={"collectionId": made["id"]}, files=files).raise_for_status()
        for _ in range(request.config.getoption("--soak-rounds")):
            time.sleep(0.3)
            server.kill()
            server.wait()
            server = start("serve", "--port", "0", data=data, log=log)
            url = wait_ready(data, server, log)
        documents = wait_all_indexed(url, count)
        assert len({document["sourceName"] for document in documents}) == count
        chunks = sum(document["chunkCount"] for document in documents)
        status = httpx.get(f"{url}/v1/status", timeout=30).raise_for_status().json()
        assert status["index"]["points"] == chunks
        found = httpx.post(f"{url}/v1/search", json={"query": "проверка баланса", "topK": 200}, timeout=30).json()
        ids = [hit["chunkId"] for hit in found["hits"]]
        assert len(ids) == len(set(ids)) == min(200, chunks)
    finally:
        stop(server)


def test_ingest_and_search_use_the_server_that_runs_on_the_same_data_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_documents(tmp_path / "docs", 5)
    with running_server(data, tmp_path / "log") as (url, _):
        first = kroshka("ingest", str(tmp_path / "docs"), "--collection", "c", "--json", data=data)
        assert first.returncode == 0, first.stderr
        report = json.loads(first.stdout)
        assert report["service"] == url
        assert [document["status"] for document in report["documents"]] == ["indexed"] * 5
        again = json.loads(kroshka("ingest", str(tmp_path / "docs"), "--collection", "c", "--json", data=data).stdout)
        assert {document["status"] for document in again["documents"]} == {"unchanged"}
        found = kroshka("search", "диагностика линии", "--json", data=data)
        assert json.loads(found.stdout)["outcome"] == "hits"


def test_an_ingest_and_a_starting_server_share_one_data_folder(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    write_documents(tmp_path / "docs", 8)
    ingest = start("ingest", str(tmp_path / "docs"), "--collection", "c", data=data, log=tmp_path / "ingest.log")
    server = start("serve", "--port", "0", data=data, log=log)
    try:
        url = wait_ready(data, server, log)
        assert ingest.wait(90) == 0, (tmp_path / "ingest.log").read_text()
        assert len(wait_all_indexed(url, 8)) == 8
    finally:
        stop(ingest)
        stop(server)


def test_two_searches_at_once_without_a_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_documents(tmp_path / "docs", 3)
    assert kroshka("ingest", str(tmp_path / "docs"), "--collection", "c", data=data).returncode == 0
    logs = [tmp_path / "a", tmp_path / "b"]
    searches = [start("search", "диагностика", "--json", data=data, log=log) for log in logs]
    assert [search.wait(60) for search in searches] == [0, 0], [log.read_text() for log in logs]
    answers = [json.loads(log.read_text()) for log in logs]
    assert [h["chunkId"] for h in answers[0]["hits"]] == [h["chunkId"] for h in answers[1]["hits"]] != []


def test_a_taken_port_is_a_sentence(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", tmp_path / "log") as (url, _):
        second = kroshka("serve", "--port", url.rpartition(":")[2], data=tmp_path / "other")
    assert second.returncode == 1
    assert "KROSHKA_PORT" in second.stderr
    assert "Traceback" not in second.stderr


def test_an_unknown_embedder_is_a_sentence_that_names_what_is_allowed(tmp_path: Path) -> None:
    ended = kroshka("serve", "--port", "0", data=tmp_path / "data", EMBEDDER="magic")
    assert ended.returncode == 1
    assert "EMBEDDER" in ended.stderr
    assert "hash" in ended.stderr


def test_a_server_stops_politely_and_withdraws_its_address(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_server(data, tmp_path / "log") as (_, process):
        assert stop(process) == 0
    assert not (data / "server.json").exists()


def test_a_public_address_without_a_key_is_refused(tmp_path: Path) -> None:
    ended = kroshka("serve", "--host", "0.0.0.0", "--port", "0", data=tmp_path / "data")
    assert ended.returncode == 1
    assert "KROSHKA_ALLOW_ANONYMOUS" in ended.stderr
