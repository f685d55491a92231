"""`/v1/documents`: reading and deleting."""

from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from tests.support.aio import run
from tests.support.api import open_api


def test_a_document_tells_what_it_is_and_how_far_it_has_come(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload("Регламент.md", b"# A\n\nb", description="of 2024", attributes='{"year": 2024}')
            found = await api.json("GET", f"/v1/documents/{entry['id']}")
            assert (found["sourceName"], found["status"], found["chunkCount"]) == ("Регламент.md", "queued", 0)
            assert (found["mediaType"], found["sizeBytes"], found["revision"]) == ("text/markdown", 6, 1)
            assert (found["description"], found["attributes"]) == ("of 2024", {"year": 2024})
            assert (found["error"], found["pending"]) == (None, None)

    run(scenario())


def test_an_indexed_document_has_its_chunks_in_order_and_by_pages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            accepted = await api.world.indexed(texts=("one", "two", "three"))
            path = f"/v1/documents/{accepted.document_id}"
            found = await api.json("GET", path)
            assert (found["status"], found["chunkCount"]) == ("indexed", 3)
            first = await api.json("GET", f"{path}/chunks", params={"limit": "2"})
            rest = await api.json("GET", f"{path}/chunks", params={"limit": "2", "cursor": first["nextCursor"]})
            chunks = [*first["items"], *rest["items"]]
            assert rest["nextCursor"] is None
            assert [chunk["chunkIndex"] for chunk in chunks] == [0, 1, 2]
            assert [chunk["text"][chunk["contentStart"] :] for chunk in chunks] == ["one", "two", "three"]
            assert (chunks[1]["sectionPath"], chunks[1]["span"]) == (["Title", "S"], [10, 13])

    run(scenario())


def test_a_replacement_on_its_way_is_shown_beside_what_serves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            accepted = await api.world.indexed("A.md")
            await api.world.accept("A.md", "other bytes")
            found = await api.json("GET", f"/v1/documents/{accepted.document_id}")
            assert (found["status"], found["revision"]) == ("indexed", 1)
            assert found["pending"] == {"revision": 2, "status": "queued", "error": None}

    run(scenario())


def test_the_list_is_searched_by_name_in_any_case_and_script(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for name in ("Регламент работ.md", "Straße.md", "100%_sure.md"):
                await api.upload(name, name.encode())

            async def names(**params: str) -> list[str]:
                answer = await api.json("GET", "/v1/documents", params=params)
                return [item["sourceName"] for item in answer["items"]]

            assert await names(q="РЕГЛАМЕНТ") == ["Регламент работ.md"]
            assert await names(q="strasse") == ["Straße.md"]
            assert await names(q="%_") == ["100%_sure.md"]
            assert await names(q="no such") == []
            assert len(await names(status="queued")) == 3
            assert await names(status="indexed") == []
            assert len(await names(collectionId=api.collection_id)) == 3

    run(scenario())


def test_the_newest_document_comes_first_and_pages_hold_each_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            uploaded = [(await api.upload(f"{n}.md", str(n).encode()))["id"] for n in range(5)]
            found, params = [], {"limit": "2"}
            while True:
                page = await api.json("GET", "/v1/documents", params=params)
                found += [item["id"] for item in page["items"]]
                if page["nextCursor"] is None:
                    break
                params["cursor"] = page["nextCursor"]
            assert sorted(found) == sorted(uploaded)
            assert len(page["items"]) == 1

    run(scenario())


def test_a_list_of_a_collection_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.problem("GET", f"/v1/documents?collectionId={uuid4()}", 404)

    run(scenario())


def test_the_original_comes_back_byte_for_byte_and_never_runs_here(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            content = b"<script>alert(1)</script>" + bytes(range(1, 256))
            name = 'reports/Отчёт "2024".html'
            entry = await api.upload(name, content)
            response = await api.client.get(f"/v1/documents/{entry['id']}/content")
            assert response.content == content
            headers = response.headers
            assert headers["content-type"] == "text/html"
            assert headers["content-length"] == str(len(content))
            assert headers["content-security-policy"] == "sandbox; default-src 'none'"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-disposition"].startswith("attachment; ")
            assert quote('Отчёт "2024".html') in headers["content-disposition"]
            head = await api.client.head(f"/v1/documents/{entry['id']}/content")
            assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(content)))

    run(scenario())


def test_an_original_that_the_store_lost_is_a_problem_and_no_half_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            api.blobs.contents.clear()
            problem = await api.problem("GET", f"/v1/documents/{entry['id']}/content", 503)
            assert problem["type"] == "urn:kroshka:problem:store_unavailable"

    run(scenario())


def test_a_deleted_document_is_deleting_until_its_job_is_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            path = f"/v1/documents/{entry['id']}"
            gone = await api.json("DELETE", path, status=202)
            assert (gone["id"], gone["status"]) == (entry["id"], "deleting")
            assert (await api.json("GET", f"/v1/jobs/{gone['jobId']}"))["kind"] == "delete"
            assert (await api.json("GET", path))["status"] == "deleting"
            again = await api.json("DELETE", path, status=202)
            assert again["jobId"] == gone["jobId"]
            await api.problem("GET", f"{path}/content", 404)

    run(scenario())


def test_documents_that_are_not_there_are_problems_that_name_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            missing = uuid4()
            for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/content"), ("GET", "/chunks")):
                problem = await api.problem(method, f"/v1/documents/{missing}{tail}", 404)
                assert str(missing) in problem["detail"]

    run(scenario())
