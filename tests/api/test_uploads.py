"""`POST /v1/documents`: what the form may hold, and what becomes of each file."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.aio import run
from tests.support.api import Api, open_api

Parts = list[tuple[str, tuple[str | None, bytes]]]


async def post(api: Api, parts: Parts, status: int = 202, **params: str) -> Any:
    """Sends the parts in their order."""
    return await api.json("POST", "/v1/documents", status=status, files=parts, params=params)


def test_a_file_is_stored_and_queued_with_its_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload("A.md", b"# A")
            assert (entry["sourceName"], entry["status"], entry["revision"]) == ("A.md", "queued", 1)
            assert list(api.blobs.contents.values()) == [b"# A"]
            job = await api.json("GET", f"/v1/jobs/{entry['jobId']}")
            assert (job["kind"], job["state"], job["documentId"]) == ("ingest", "queued", entry["id"])

    run(scenario())


def test_the_same_bytes_again_are_unchanged_and_other_bytes_the_next_revision(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            first = await api.upload("A.md", b"# A")
            again = await api.upload("A.md", b"# A")
            changed = await api.upload("A.md", b"# B")
            assert (again["status"], again["id"], again["revision"]) == ("unchanged", first["id"], 1)
            assert (changed["status"], changed["id"], changed["revision"]) == ("queued", first["id"], 2)
            assert sorted(api.blobs.contents.values()) == [b"# A", b"# B"]

    run(scenario())


def test_a_refused_file_is_listed_with_its_problem_and_does_not_stop_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=10) as api:
            parts: Parts = [
                ("file", ("big.md", b"x" * 11)),
                ("file", ("empty.md", b"")),
                ("file", ("good.md", b"# good")),
            ]
            answer = await post(api, parts, collectionId=api.collection_id)
            big, empty, good = answer["documents"]
            assert (big["status"], big["problem"]["status"]) == ("refused", 413)
            assert big["problem"]["errors"] == [
                {"pointer": "/file", "message": "11 bytes, at most 10 are allowed", "limit": 10}
            ]
            assert (empty["status"], empty["problem"]["detail"]) == ("refused", "/file: the file is empty")
            assert (good["status"], good["sourceName"]) == ("queued", "good.md")
            assert list(api.blobs.contents.values()) == [b"# good"]

    run(scenario())


def test_fields_before_the_files_go_to_all_of_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            parts: Parts = [
                ("collectionId", (None, api.collection_id.encode())),
                ("description", (None, "О линиях".encode())),
                ("attributes", (None, b'{"year": 2024}')),
                ("agentIds", (None, b"a1")),
                ("agentIds", (None, b"a2")),
                ("roleIds", (None, b'["r1", "r2", "r1"]')),
                ("file", ("A.md", b"a")),
                ("file", ("B.md", b"b")),
            ]
            for entry in (await post(api, parts))["documents"]:
                found = await api.json("GET", f"/v1/documents/{entry['id']}")
                assert (found["description"], found["attributes"]) == ("О линиях", {"year": 2024})
                assert (found["agentIds"], found["roleIds"], found["channelIds"]) == (["a1", "a2"], ["r1", "r2"], [])

    run(scenario())


def test_files_may_come_before_the_fields_as_long_as_none_is_stored_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=10) as api:
            parts: Parts = [
                ("file", ("A.md", b"a")),
                ("file", ("big.md", b"x" * 11)),
                ("description", (None, b"late but known")),
                ("collectionId", (None, api.collection_id.encode())),
            ]
            good, big = (await post(api, parts))["documents"]
            assert (good["status"], big["status"], big["problem"]["status"]) == ("queued", "refused", 413)
            found = await api.json("GET", f"/v1/documents/{good['id']}")
            assert found["description"] == "late but known"

    run(scenario())


def test_a_field_after_a_stored_file_is_refused_and_says_what_was_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            parts: Parts = [("file", ("A.md", b"a")), ("description", (None, b"too late"))]
            params = {"collectionId": api.collection_id}
            problem = await api.problem("POST", "/v1/documents", 422, files=parts, params=params)
            assert problem["type"] == "urn:kroshka:problem:late_field"
            assert problem["errors"][0]["pointer"] == "/description"
            assert [(entry["sourceName"], entry["status"]) for entry in problem["documents"]] == [("A.md", "queued")]

    run(scenario())


FILE = ("file", ("A.md", b"a"))


BAD_FIELDS = (
    ([("colour", (None, b"red")), FILE], "/colour", None),
    ([("description", (None, b"x" * 2_001)), FILE], "/description", 2_000),
    ([("description", (None, b"\xff\xfe")), FILE], "/description", None),
    ([("description", (None, b"a")), ("description", (None, b"b")), FILE], "/description", None),
    ([("attributes", (None, b"[1]")), FILE], "/attributes", None),
    ([("attributes", (None, b'{"a":' * 50_000)), FILE], "/attributes", None),
    ([("agentIds", (None, b"[1]")), FILE], "/agentIds", None),
    ([("agentIds", (None, b"x" * 201)), FILE], "/agentIds", 200),
    ([("collectionId", (None, b"7")), FILE], "/collectionId", None),
    ([("upload", ("A.md", b"a"))], "/upload", None),
    ([("description", (None, b"only a field"))], "/file", None),
)


def test_a_bad_field_is_refused_by_its_name_and_nothing_is_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for parts, pointer, limit in BAD_FIELDS:
                problem = await api.problem("POST", "/v1/documents", 422, files=parts)
                assert [(error["pointer"], error.get("limit")) for error in problem["errors"]] == [(pointer, limit)]
                assert api.blobs.contents == {}

    run(scenario())


def test_a_collection_is_required_and_given_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            path, own = "/v1/documents", api.collection_id
            missing = await api.problem("POST", path, 422, files=[FILE])
            assert missing["errors"][0]["pointer"] == "/collectionId"
            twice: Parts = [("collectionId", (None, own.encode())), FILE]
            await api.problem("POST", path, 422, files=twice, params={"collectionId": own})
            unknown = await api.problem("POST", path, 404, files=[FILE], params={"collectionId": str(uuid4())})
            assert unknown["type"] == "urn:kroshka:problem:not_found"
            assert api.blobs.contents == {}

    run(scenario())


NO_FORMS = (
    ("application/json", b"{}", 415),
    ("multipart/form-data", b"", 400),
    ("multipart/form-data; boundary=b", b"", 400),
    ("multipart/form-data; boundary=b", b"no form at all", 400),
    (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="A"\r\n\r\nx',
        400,
    ),
    ("multipart/form-data; boundary=b", b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n", 400),
)


def test_a_body_that_is_no_form_is_a_problem_and_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for content_type, body, status in NO_FORMS:
                headers, params = {"Content-Type": content_type}, {"collectionId": api.collection_id}
                await api.problem("POST", "/v1/documents", status, content=body, headers=headers, params=params)
                assert api.blobs.contents == {}
                assert (await api.json("GET", "/v1/documents"))["items"] == []

    run(scenario())


def test_a_form_over_the_whole_bound_is_refused_before_a_file_is_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path, max_upload_bytes=10) as api:
            limit = 10 * 8 + 4 * 1024 * 1024
            parts: Parts = [("file", ("A.md", b"a")), ("file", ("B.md", b"x" * limit))]
            params = {"collectionId": api.collection_id}
            problem = await api.problem("POST", "/v1/documents", 413, files=parts, params=params)
            assert problem["errors"][0]["limit"] == limit
            assert api.blobs.contents == {}

    run(scenario())


def test_a_name_is_kept_as_it_is_and_never_becomes_a_path(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for name in ("папка/Отчёт.md", "../../etc/passwd", "日本語.md", "a b+c.md"):
                entry = await api.upload(name, name.encode())
                assert (entry["status"], entry["sourceName"]) == ("queued", name)
            keys = list(api.blobs.contents)
            assert all(len(key) == 36 and "/" not in key for key in keys)

    run(scenario())


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            body = b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\nx\r\n--b--\r\n'
            headers = {"Content-Type": "multipart/form-data; boundary=b"}
            params = {"collectionId": api.collection_id}
            problem = await api.problem("POST", "/v1/documents", 422, content=body, headers=headers, params=params)
            assert problem["errors"][0] == {"pointer": "/file", "message": "needs a file name"}

    run(scenario())
