"""`/v1/collections`."""

from pathlib import Path
from uuid import uuid4

from tests.support.aio import run
from tests.support.api import open_api


def test_a_new_collection_is_there_with_nothing_in_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            body = {"name": "Регламенты", "description": "Operations"}
            made = await api.json("POST", "/v1/collections", status=201, json=body)
            assert (made["name"], made["description"]) == ("Регламенты", "Operations")
            assert (made["documents"], made["chunks"], made["bytes"]) == (0, 0, 0)
            assert made["createdAt"].endswith("Z")
            assert await api.json("GET", f"/v1/collections/{made['id']}") == made

    run(scenario())


def test_a_name_is_unique_without_regard_to_case(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.json("POST", "/v1/collections", status=201, json={"name": "Регламенты"})
            problem = await api.problem("POST", "/v1/collections", 409, json={"name": "РЕГЛАМЕНТЫ"})
            assert problem["type"] == "urn:kroshka:problem:name_taken"
            assert "РЕГЛАМЕНТЫ" in problem["detail"]

    run(scenario())


def test_pages_of_the_list_follow_each_other_by_name_and_hold_everything_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for name in ("b", "А", "a"):
                await api.json("POST", "/v1/collections", status=201, json={"name": name})
            names, cursor = [], None
            while True:
                params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
                page = await api.json("GET", "/v1/collections", params=params)
                assert len(page["items"]) <= 2
                names += [item["name"] for item in page["items"]]
                cursor = page["nextCursor"]
                if cursor is None:
                    break
            assert names == ["a", "b", "Docs", "А"]

    run(scenario())


def test_a_deleted_collection_is_gone_at_once_and_its_documents_are_deleted_by_jobs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            document = await api.upload()
            gone = await api.json("DELETE", f"/v1/collections/{api.collection_id}", status=202)
            assert gone == {"id": api.collection_id, "status": "deleting"}
            await api.problem("GET", f"/v1/collections/{api.collection_id}", 404)
            await api.problem("DELETE", f"/v1/collections/{api.collection_id}", 404)
            assert (await api.json("GET", "/v1/collections"))["items"] == []
            jobs = (await api.json("GET", "/v1/jobs", params={"state": "queued"}))["items"]
            assert [(job["kind"], job["documentId"]) for job in jobs] == [("delete", document["id"])]

    run(scenario())


def test_a_collection_that_is_not_there_is_a_problem_that_names_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            missing = uuid4()
            problem = await api.problem("GET", f"/v1/collections/{missing}", 404)
            assert problem["detail"] == f"collection {missing} was not found"
            assert problem["instance"] == f"/v1/collections/{missing}"

    run(scenario())


def test_counts_follow_what_is_indexed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.world.indexed(texts=("one", "two", "three"))
            found = await api.json("GET", f"/v1/collections/{api.collection_id}")
            assert (found["documents"], found["chunks"], found["bytes"]) == (1, 3, 100)

    run(scenario())
