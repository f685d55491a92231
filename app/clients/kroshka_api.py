"""The command line's client of a running Kroshka: the routes of /v1 that it needs, and how it finds a local one."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import msgspec

from app.domain.errors import KroshkaError
from app.domain.search import SearchResult

DISCOVERY_FILE = "server.json"


class ApiError(KroshkaError):
    """The service answered with a problem. `status` is the HTTP status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class ServerAddress(msgspec.Struct, frozen=True):
    """What a running service writes into its data folder."""

    url: str
    pid: int


def announce(data: Path, url: str) -> Path:
    """Writes the discovery file, readable by its owner alone."""
    path = data / DISCOVERY_FILE
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_bytes(msgspec.json.encode(ServerAddress(url=url, pid=os.getpid())))
    temporary.chmod(0o600)
    temporary.replace(path)
    return path


def withdraw(data: Path) -> None:
    """Removes the discovery file if it is still ours."""
    address = _read_address(data)
    if address is not None and address.pid == os.getpid():
        (data / DISCOVERY_FILE).unlink(missing_ok=True)


def discover(data: Path) -> str | None:
    """The address of a service that works on this data folder and answers; None when there is none."""
    address = _read_address(data)
    if address is None:
        return None
    try:
        alive = httpx.get(f"{address.url}/health/live", timeout=2.0).status_code == 200
    except httpx.HTTPError:
        return None
    return address.url if alive else None


def _read_address(data: Path) -> ServerAddress | None:
    try:
        return msgspec.json.decode((data / DISCOVERY_FILE).read_bytes(), type=ServerAddress)
    except (OSError, msgspec.DecodeError):
        return None


class KroshkaApi:
    """Thin: every method is one request. Raises ApiError with the problem's own words."""

    def __init__(self, *, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, key: str | None = None) -> AsyncIterator["KroshkaApi"]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=httpx.Timeout(60.0, connect=5.0)) as client:
            yield cls(client=client)

    async def ensure_collection(self, name: str, description: str = "") -> UUID:
        """The id of the collection of this name, made if it is not there."""
        if (found := await self.find_collection(name)) is not None:
            return found
        try:
            made = await self._json("POST", "/v1/collections", json={"name": name, "description": description})
        except ApiError as error:
            if error.status == 409 and (found := await self.find_collection(name)) is not None:
                return found
            raise
        return UUID(made["id"])

    async def find_collection(self, name: str) -> UUID | None:
        cursor: str | None = None
        while True:
            page = await self._json(
                "GET", "/v1/collections", params={"limit": 200} | ({"cursor": cursor} if cursor else {})
            )
            for item in page["items"]:
                if item["name"].casefold() == name.casefold():
                    return UUID(item["id"])
            cursor = page.get("nextCursor")
            if cursor is None:
                return None

    async def upload(self, collection_id: UUID, source_name: str, path: Path) -> dict[str, Any]:
        """Uploads one file; returns its entry of the answer (`status`, `id`, `jobId`, or a problem)."""
        with path.open("rb") as stream:
            answer = await self._json(
                "POST",
                "/v1/documents",
                params={"collectionId": str(collection_id)},
                files={"file": (source_name, stream, "application/octet-stream")},
            )
        entry: dict[str, Any] = answer["documents"][0]
        return entry

    async def document(self, document_id: str) -> dict[str, Any]:
        return await self._json("GET", f"/v1/documents/{document_id}")

    async def job(self, job_id: str) -> dict[str, Any]:
        return await self._json("GET", f"/v1/jobs/{job_id}")

    async def search(self, body: dict[str, Any]) -> SearchResult:
        response = await self._send("POST", "/v1/search", json=body)
        return msgspec.json.decode(response.content, type=SearchResult)

    async def _json(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((await self._send(method, path, **arguments)).content)
        return answer

    async def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            response = await self._client.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise ApiError(503, f"{self._client.base_url} does not answer: {error or type(error).__name__}") from error
        if response.is_error:
            raise ApiError(response.status_code, _problem_text(response))
        return response


def _problem_text(response: httpx.Response) -> str:
    try:
        problem = json.loads(response.content)
    except ValueError:
        return f"HTTP {response.status_code}"
    details: Sequence[dict[str, Any]] = problem.get("errors") or []
    lines = "; ".join(f"{item.get('pointer', '')}: {item.get('message', '')}" for item in details)
    return lines or str(problem.get("detail") or problem.get("title"))
