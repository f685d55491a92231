"""A real server and real connections: streaming, broken connections, and the command line's own client."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from app.clients.kroshka_api import ApiError, KroshkaApi, announce, discover
from app.domain.errors import IndexUnavailable
from tests.support.aio import run
from tests.support.api import Api, open_api, serving

BOUNDARY = "b"
HEAD = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="A.md"\r\n\r\n'.encode()
TAIL = f"\r\n--{BOUNDARY}--\r\n".encode()


def upload_request(api: Api, port: int, length: int) -> bytes:
    """Request line and headers of an upload with a body of `length` bytes."""
    lines = (
        f"POST /v1/documents?collectionId={api.collection_id} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}",
        f"Content-Length: {length}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def test_a_file_is_stored_while_it_arrives(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=1_000_000) as api, serving(api.app) as port:
            content = b"# A\n\n" + b"x" * 200_000
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(upload_request(api, port, len(HEAD) + len(content) + len(TAIL)))
            writer.write(HEAD + content[:100_000])
            await writer.drain()
            await api.blobs.arrived.wait()
            assert api.blobs.contents == {}, "half of the body is still on its way"
            writer.write(content[100_000:] + TAIL)
            await writer.drain()
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 202 ")
            assert list(api.blobs.contents.values()) == [content]
            writer.close()
            await writer.wait_closed()

    run(scenario())


def test_a_client_that_leaves_in_the_middle_leaves_nothing_and_the_server_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=1_000_000) as api, serving(api.app) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(upload_request(api, port, 500_000) + HEAD + b"x" * 100_000)
            await writer.drain()
            await api.blobs.arrived.wait()
            writer.transport.abort()
            await api.blobs.aborted.wait()
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                listed = await client.get("/v1/documents")
            assert listed.json()["items"] == []
            assert api.blobs.contents == {}

    run(scenario())


def test_a_form_without_a_length_is_read_to_its_bound_and_no_further(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=100) as api, serving(api.app) as port:
            bound = 100 * 8 + 4 * 1024 * 1024

            async def form(size: int) -> AsyncIterator[bytes]:
                yield HEAD
                for _ in range(size // 1_000):
                    yield b"x" * 1_000
                yield TAIL

            url = f"http://127.0.0.1:{port}/v1/documents?collectionId={api.collection_id}"
            headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
            async with httpx.AsyncClient() as client:
                small = await client.post(url, headers=headers, content=form(50_000))
                assert small.json()["documents"][0]["problem"]["status"] == 413
                assert small.status_code == 202
            async with httpx.AsyncClient() as client:
                try:
                    large = await client.post(url, headers=headers, content=form(bound * 2))
                except httpx.WriteError:
                    pass  # the server answered and closed before it was told everything
                else:
                    assert large.status_code == 413
            assert api.blobs.contents == {}
            assert api.services.metrics.registry.get_sample_value("kroshka_limited_total", {"reason": "body"}) == 1

    run(scenario())


def test_a_download_that_breaks_off_is_no_whole_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api, serving(api.app) as port:
            entry = await api.upload("A.md", b"0123456789")
            api.blobs.breaks_after_blocks = 2
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.get(f"/v1/documents/{entry['id']}/content")
                assert (await client.get("/health/live")).status_code == 200

    run(scenario())


def test_a_foreign_host_is_refused_on_a_real_socket_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api, serving(api.app) as port:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                assert (await client.get("/v1/collections")).status_code == 200
                refused = await client.get("/v1/collections", headers={"Host": "rebound.example"})
            assert refused.status_code == 403
            assert refused.headers["content-type"] == "application/problem+json"

    run(scenario())


def test_the_command_lines_client_understands_every_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "Регламент.md"
        path.write_text("# Сбой\n\nТекст", encoding="utf-8")
        async with open_api(tmp_path) as api, serving(api.app) as port:
            announce(tmp_path, f"http://127.0.0.1:{port}")
            url = await asyncio.to_thread(discover, tmp_path)
            assert url is not None
            async with KroshkaApi.connect(url) as client:
                collection_id = await client.ensure_collection("Регламенты")
                assert await client.ensure_collection("РЕГЛАМЕНТЫ") == collection_id
                entry = await client.upload(collection_id, "docs/Регламент.md", path)
                assert entry["status"] == "queued"
                job = await client.job(entry["jobId"])
                assert (job["state"], job["progress"], job["error"]) == ("queued", None, None)
                document = await client.document(entry["id"])
                assert (document["chunkCount"], document["sourceName"]) == (0, "docs/Регламент.md")
                assert (await client.upload(collection_id, "docs/Регламент.md", path)).get("jobId") is not None
                result = await client.search({"query": "сбой", "collectionIds": [str(collection_id)], "topK": 3})
                assert result == api.search.result

    run(scenario())


def test_the_command_lines_client_shows_problems_in_the_services_own_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        empty = tmp_path / "empty.md"
        empty.touch()
        async with (
            open_api(tmp_path) as api,
            serving(api.app) as port,
            KroshkaApi.connect(f"http://127.0.0.1:{port}") as client,
        ):
            refused = await client.upload(api.world.collection.id, "empty.md", empty)
            assert (refused["status"], refused["problem"]["detail"]) == ("refused", "/file: the file is empty")
            with pytest.raises(ApiError, match="was not found") as missing:
                await client.document(str(uuid4()))
            assert missing.value.status == 404
            with pytest.raises(ApiError, match="/topK: Expected `int` <= 200"):
                await client.search({"query": "a", "topK": 500})
            api.search.result = IndexUnavailable("the index is away", cause="refused")
            with pytest.raises(ApiError, match="the index is away") as away:
                await client.search({"query": "a"})
            assert away.value.status == 503

    run(scenario())
