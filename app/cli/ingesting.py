"""Uploading files through a door and following their jobs to the end."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from uuid import UUID

from msgspec import Struct

from app.cli.doors import Door, JobView, Upload

POLL_S = 0.2
FINAL = ("done", "dead", "cancelled")


class SourceFile(Struct, frozen=True):
    """A file and the name under which it is indexed (relative to the folder that was given)."""

    path: Path
    source_name: str


class Outcome(Struct, frozen=True, kw_only=True, rename="camel"):
    """How one file ended: `indexed`, `unchanged`, `refused`, `failed` or `cancelled`."""

    source_name: str
    status: str
    document_id: str | None = None
    chunks: int = 0
    error: str | None = None


class Progress(Struct, frozen=True, kw_only=True):
    """All files together: chunks embedded of those known so far, and documents that ended."""

    files_done: int
    files_total: int
    chunks_done: int
    chunks_total: int
    current: str = ""


def find_files(paths: Iterable[Path], suffixes: Sequence[str]) -> list[SourceFile]:
    """Files as given; folders are walked for files of a supported kind, names relative to the folder."""
    found: list[SourceFile] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in suffixes)
            found += [SourceFile(p, p.relative_to(path).as_posix()) for p in inside]
        else:
            found.append(SourceFile(path, path.name))
    return found


class Ingestion:
    """One run: upload all, then follow. `outcomes` is complete when `follow` ends."""

    def __init__(self, *, door: Door, collection_id: UUID, files: Sequence[SourceFile]) -> None:
        self._door, self._collection_id, self._files = door, collection_id, files
        self._waiting: dict[str, tuple[SourceFile, Upload]] = {}
        self._views: dict[str, JobView] = {}
        self.outcomes: list[Outcome] = []

    async def upload(self) -> AsyncIterator[Progress]:
        """Sends every file; those that need no work are done at once."""
        for file in self._files:
            upload = await self._door.upload(self._collection_id, file.source_name, file.path)
            if upload.job_id is not None:
                self._waiting[upload.job_id] = (file, upload)
            else:
                self.outcomes.append(await self._at_the_door(file, upload))
            yield self._progress(file.source_name)

    async def follow(self) -> AsyncIterator[Progress]:
        """Polls the jobs until each has ended."""
        while self._waiting:
            current = ""
            for job_id in list(self._waiting):
                view = self._views[job_id] = await self._door.job(job_id)
                if view.state in FINAL:
                    await self._end(job_id, view)
                elif view.state == "running":
                    current = self._waiting[job_id][0].source_name
                if view.state == "queued" and current:
                    break  # jobs run in order: those behind a queued one have not begun either
            yield self._progress(current)
            if self._waiting:
                await asyncio.sleep(POLL_S)

    async def _at_the_door(self, file: SourceFile, upload: Upload) -> Outcome:
        chunks = await self._door.chunk_count(upload.document_id) if upload.document_id else 0
        return Outcome(
            source_name=file.source_name,
            status=upload.outcome,
            document_id=upload.document_id,
            chunks=chunks,
            error=upload.reason,
        )

    async def _end(self, job_id: str, view: JobView) -> None:
        file, upload = self._waiting.pop(job_id)
        status = {"done": "indexed", "dead": "failed"}.get(view.state, view.state)
        chunks = await self._door.chunk_count(upload.document_id) if upload.document_id and status == "indexed" else 0
        self.outcomes.append(
            Outcome(
                source_name=file.source_name,
                status=status,
                document_id=upload.document_id,
                chunks=chunks,
                error=view.error,
            )
        )

    def _progress(self, current: str) -> Progress:
        running = [view for job_id, view in self._views.items() if job_id in self._waiting]
        finished = sum(outcome.chunks for outcome in self.outcomes if outcome.status == "indexed")
        return Progress(
            files_done=len(self.outcomes),
            files_total=len(self._files),
            chunks_done=finished + sum(view.done for view in running),
            chunks_total=finished + sum(view.total for view in running),
            current=current,
        )
