"""The OpenAPI document and its page, without a network."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.api.documentation import MEDIA_TYPES, assets_folder
from tests.support.aio import run
from tests.support.api import open_api

METHODS = ("get", "post", "put", "patch", "delete")
EXPECTED = {
    "/_api/knowledge/search": {"post"},
    "/health/live": {"get"},
    "/health/ready": {"get"},
    "/metrics": {"get"},
    "/v1/collections": {"get", "post"},
    "/v1/collections/{collection_id}": {"get", "delete"},
    "/v1/documents": {"get", "post"},
    "/v1/documents/{document_id}": {"get", "delete"},
    "/v1/documents/{document_id}/chunks": {"get"},
    "/v1/documents/{document_id}/content": {"get"},
    "/v1/jobs": {"get"},
    "/v1/jobs/{job_id}": {"get"},
    "/v1/jobs/{job_id}/cancel": {"post"},
    "/v1/search": {"post"},
    "/v1/search/batch": {"post"},
    "/v1/settings/rag": {"get", "put", "patch"},
    "/v1/status": {"get"},
}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(path, method, operation)."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


def references(value: Any) -> Iterator[str]:
    """Every $ref below a value."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


async def document_of(folder: Path) -> dict[str, Any]:
    async with open_api(folder) as api:
        document: dict[str, Any] = await api.json("GET", "/openapi.json")
        return document


def test_every_route_is_described_under_its_own_operation_id(tmp_path: Path) -> None:
    document = run(document_of(tmp_path))

    assert {path: set(methods) & set(METHODS) for path, methods in document["paths"].items()} == EXPECTED
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in ids)
    assert all(operation["summary"] and operation["tags"] for _, _, operation in operations(document))
    assert document["openapi"].startswith("3.1")


def test_every_operation_declares_its_problems_and_nothing_but_problems(tmp_path: Path) -> None:
    document = run(document_of(tmp_path))

    for path, method, operation in operations(document):
        failures = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert {"403", "422", "500", "503"} <= set(failures), (path, method)
        assert ("415" in failures) == ("requestBody" in operation), (path, method)
        assert ("404" in failures) or "{" not in path, (path, method)
        for status, answer in failures.items():
            assert list(answer["content"]) == ["application/problem+json"], (path, method, status)
            assert answer["content"]["application/problem+json"]["examples"], (path, method, status)


def test_every_reference_leads_somewhere(tmp_path: Path) -> None:
    document = run(document_of(tmp_path))

    found = set(references(document))
    assert found
    for reference in found:
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_bodies_and_parameters_are_described_as_they_are_read(tmp_path: Path) -> None:
    document = run(document_of(tmp_path))
    by_id = {operation["operationId"]: operation for _, _, operation in operations(document)}

    search = document["components"]["schemas"]["SearchBody"]
    assert {"query", "collectionIds", "collectionId", "topK", "minScore", "rerank", "explain", "timeoutMs"} <= set(
        search["properties"]
    )
    assert search["required"] == ["query"]
    assert search["additionalProperties"] is False
    assert by_id["search"]["requestBody"]["content"]["application/json"]["schema"]["examples"]
    assert "additionalProperties" not in document["components"]["schemas"]["SearchResult"]
    form = by_id["uploadDocuments"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert {"file", "collectionId", "description", "attributes", "agentIds"} <= set(form["properties"])
    names = {parameter["name"] for parameter in by_id["listDocuments"]["parameters"]}
    assert names == {"collectionId", "q", "status", "limit", "cursor"}
    headers = {parameter["name"] for parameter in by_id["replaceRagSettings"]["parameters"]}
    assert headers == {"workspaceId", "If-Match"}


def test_the_examples_of_requests_are_taken_by_their_routes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            document = await api.json("GET", "/openapi.json")
            tried = 0
            for path, method, operation in operations(document):
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                for example in content.get("schema", {}).get("examples", []):
                    response = await api.client.request(method, path, json=example)
                    assert response.is_success, (path, method, response.text)
                    tried += 1
            assert tried >= 6

    run(scenario())


def test_the_page_and_all_it_loads_come_from_here(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            page = await api.client.get("/docs")
            assert page.headers["content-type"].startswith("text/html")
            assert "script-src 'self';" in page.headers["content-security-policy"]
            assert not re.search(r"<script>|https?://|//[a-z]", page.text)
            loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
            assert len(loaded) == 4
            for address in loaded:
                response = await api.client.get(address)
                assert (response.status_code, bool(response.content)) == (200, True), address
            bundle = await api.client.get("/docs/assets/swagger-ui-bundle.js")
            assert bundle.headers["content-type"].startswith("text/javascript")
            assert b"SwaggerUIBundle" in bundle.content
            assert "/openapi.json" in (await api.client.get("/docs/start.js")).text

    run(scenario())


def test_the_assets_are_found_without_importing_their_package() -> None:
    import sys

    folder = assets_folder()

    assert folder is not None
    assert all((folder / name).is_file() for name in MEDIA_TYPES)
    assert not any(name in sys.modules for name in ("flask_swagger_ui", "flask"))


def test_only_the_three_assets_are_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for name in ("index.html", "swagger-ui.js", "..%2f__init__.py", "%2e%2e", "swagger-ui.css%00"):
                await api.problem("GET", f"/docs/assets/{name}", 404)

    run(scenario())
