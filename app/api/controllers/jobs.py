"""`/v1/jobs`."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, SkipValidation

from app.api.access import SEARCH, WRITE
from app.api.openapi import problems
from app.api.paging import Limit
from app.api.services import Services
from app.api.views import JobList, JobView
from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.jobs import JobState


class JobsController(Controller):
    """Work in the background."""

    path = "/v1/jobs"
    tags = ("jobs",)

    @get(operation_id="listJobs", opt={"scope": SEARCH}, responses=problems())
    async def list_jobs(
        self,
        services: NamedDependency[SkipValidation[Services]],
        wanted: Annotated[JobState | None, QueryParameter(name="state", description="Only jobs in it.")] = None,
        limit: Limit = 50,
    ) -> JobList:
        """The newest jobs."""
        jobs = await services.queue.jobs(DEFAULT_WORKSPACE, state=wanted, limit=limit)
        return JobList(items=tuple(JobView.of(job) for job in jobs))

    @get("/{job_id:uuid}", operation_id="getJob", opt={"scope": SEARCH}, responses=problems(404))
    async def get_job(self, services: NamedDependency[SkipValidation[Services]], job_id: FromPath[UUID]) -> JobView:
        """One job with its progress."""
        return JobView.of(await services.queue.job(DEFAULT_WORKSPACE, job_id))

    @post(
        "/{job_id:uuid}/cancel",
        operation_id="cancelJob",
        opt={"scope": WRITE},
        status_code=202,
        responses=problems(404, 409),
    )
    async def cancel_job(self, services: NamedDependency[SkipValidation[Services]], job_id: FromPath[UUID]) -> JobView:
        """A queued job ends now; a running one at its next batch."""
        return JobView.of(await services.queue.cancel(DEFAULT_WORKSPACE, job_id))
