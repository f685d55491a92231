"""`/v1/jobs`."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from app.domain.documents import StoredError
from app.domain.jobs import JobProgress, JobState
from tests.support.aio import run
from tests.support.api import open_api


def test_a_running_job_tells_how_far_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            lease = await api.world.claim()
            progress = JobProgress(stage="embed", done=3, total=10, per_second=4.5)
            await api.world.queue.heartbeat(lease, progress)
            job = await api.json("GET", f"/v1/jobs/{entry['jobId']}")
            assert (job["state"], job["documentId"], job["error"]) == ("running", entry["id"], None)
            assert job["progress"] == {"stage": "embed", "done": 3, "total": 10, "perSecond": 4.5}

    run(scenario())


def test_a_dead_job_and_its_document_say_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            lease = await api.world.claim()
            assert lease.revision_id is not None
            error = StoredError("no_text_found", "the file holds no text")
            await api.world.revisions.fail(
                lease, lease.revision_id, error, job_state=JobState.DEAD, purge_after=timedelta()
            )
            job = await api.json("GET", f"/v1/jobs/{entry['jobId']}")
            assert (job["state"], job["error"]["message"]) == ("dead", "the file holds no text")
            document = await api.json("GET", f"/v1/documents/{entry['id']}")
            assert document["status"] == "failed"
            assert document["error"] == {"code": "no_text_found", "message": "the file holds no text"}

    run(scenario())


def test_a_queued_job_is_cancelled_at_once_and_its_document_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            entry = await api.upload()
            job = await api.json("POST", f"/v1/jobs/{entry['jobId']}/cancel", status=202)
            assert job["state"] == "cancelled"
            assert (await api.json("GET", f"/v1/documents/{entry['id']}"))["status"] == "cancelled"
            listed = await api.json("GET", "/v1/jobs", params={"state": "cancelled"})
            assert entry["jobId"] in [item["id"] for item in listed["items"]]

    run(scenario())


def test_the_list_holds_the_newest_up_to_its_limit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            for number in range(3):
                await api.upload(f"{number}.md", str(number).encode())
            assert len((await api.json("GET", "/v1/jobs"))["items"]) == 3
            assert len((await api.json("GET", "/v1/jobs", params={"limit": "2"}))["items"]) == 2
            assert (await api.json("GET", "/v1/jobs", params={"state": "done"}))["items"] == []

    run(scenario())


def test_a_job_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            missing = uuid4()
            assert str(missing) in (await api.problem("GET", f"/v1/jobs/{missing}", 404))["detail"]
            await api.problem("POST", f"/v1/jobs/{missing}/cancel", 404)

    run(scenario())
