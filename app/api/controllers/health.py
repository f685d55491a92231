"""`/health/live`, `/health/ready` and `/metrics`."""

import asyncio
from typing import Any

import structlog
from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from msgspec import UNSET

from app.api.access import NOBODY, WRITE, may
from app.api.figures import stored_figures
from app.api.openapi import problems
from app.api.services import Probe, Services
from app.api.views import Alive, CheckView, Readiness
from app.domain.errors import KroshkaError, TransientError

PROBE_WAIT_S = 3.0


@get("/health/live", operation_id="live", opt={"scope": NOBODY}, responses=problems(), tags=["status"])
async def alive() -> Alive:
    """The process answers. Asks nobody else."""
    return Alive()


@get("/health/ready", operation_id="ready", opt={"scope": NOBODY}, responses=problems(), tags=["status"])
async def ready(
    request: Request[Any, Any, Any], services: NamedDependency[SkipValidation[Services]]
) -> Response[Readiness]:
    """200 when models are loaded and every part answers, else 503. Details are for callers of this machine."""
    names = list(services.probes)
    checks = dict(zip(names, await asyncio.gather(*(_check(services.probes[n]) for n in names)), strict=True))
    good = all(check.status == "ok" for check in checks.values())
    told = may(request.scope["state"].get("granted", NOBODY), WRITE)
    return Response(
        Readiness(status="ready" if good else "not_ready", checks=checks if told else UNSET),
        status_code=200 if good else 503,
        headers={} if good else {"Retry-After": "1"},
    )


@get(
    "/metrics",
    operation_id="metrics",
    opt={"scope": WRITE},
    responses=problems(),
    media_type="text/plain",
    tags=["status"],
)
async def metrics(
    request: Request[Any, Any, Any], services: NamedDependency[SkipValidation[Services]]
) -> Response[bytes]:
    """Prometheus' text format. Figures of the database are as old as its last answer."""
    try:
        services.metrics.stored(await stored_figures(services))
    except TransientError as error:
        structlog.get_logger("kroshka.http").warning("figures_missing", cause=error.code)
    body, media_type = services.metrics.render(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media_type})  # as `media_type` it would get a second charset


async def _check(probe: Probe) -> CheckView:
    try:
        await asyncio.wait_for(probe(), PROBE_WAIT_S)
    except KroshkaError as error:
        return CheckView(status="failed", error=error.code)
    except (OSError, TimeoutError):
        return CheckView(status="failed", error="no_answer")
    return CheckView(status="ok")
