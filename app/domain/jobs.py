"""Durable work: one row a job, leased by one worker at a time."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from msgspec import Struct

from app.domain.documents import StoredError


class JobKind(StrEnum):
    """What a job does."""

    INGEST = "ingest"
    PURGE = "purge"
    DELETE = "delete"


class JobState(StrEnum):
    """`dead` is the end of the attempts (or a permanent error); `cancelled` was asked for."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


class JobProgress(Struct, frozen=True, kw_only=True):
    """`done` of `total` chunks in this stage; `per_second` over the stage so far."""

    stage: str
    done: int = 0
    total: int = 0
    per_second: float = 0.0


class Job(Struct, frozen=True, kw_only=True):
    """A job as people see it."""

    id: UUID
    kind: JobKind
    workspace_id: UUID
    document_id: UUID
    state: JobState
    attempts: int
    progress: JobProgress | None
    error: StoredError | None
    created_at: datetime
    updated_at: datetime


class Lease(Struct, frozen=True, kw_only=True):
    """A claimed job. Every later write is guarded by (id, worker, attempt); `wanted` shows requests that came since."""

    id: UUID
    kind: JobKind
    workspace_id: UUID
    document_id: UUID
    revision_id: UUID | None
    worker: str
    attempt: int
    failures: int
    wanted: int
    payload: dict[str, Any] = {}
