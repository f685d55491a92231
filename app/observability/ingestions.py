"""One log line and the metrics of each finished ingest."""

from collections.abc import Mapping
from typing import Protocol

import structlog

from app.observability.metrics import Metrics
from app.observability.words import OTHER

FORMAT_BY_MEDIA_TYPE = {
    "text/markdown": "markdown",
    "text/plain": "text",
    "text/html": "html",
    "text/csv": "csv",
    "application/json": "json",
    "application/pdf": "pdf",
}
STATE_BY_RESULT = {"indexed": "done", "failed": "dead", "cancelled": "cancelled"}


class IngestFigures(Protocol):
    """A finished ingest in numbers; the ingestion pipeline's report is one. Stages are in seconds."""

    @property
    def media_type(self) -> str: ...
    @property
    def result(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def stage_s(self) -> Mapping[str, float]: ...


class IngestObserver:
    """Called once with every ingest that ended, however it ended."""

    def __init__(self, *, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger("kroshka.ingestion")

    def __call__(self, figures: IngestFigures) -> None:
        document_format = FORMAT_BY_MEDIA_TYPE.get(figures.media_type, OTHER)
        state = STATE_BY_RESULT.get(figures.result, OTHER)
        self._metrics.document_ingested(
            document_format, figures.result, chunks=figures.chunks, size_bytes=figures.size_bytes
        )
        self._metrics.job_finished("ingest", state)
        for stage, seconds in figures.stage_s.items():
            self._metrics.job_stage_took("ingest", stage, state, seconds)
        self._log.info(
            "document_ingested",
            format=document_format,
            result=figures.result,
            chunks=figures.chunks,
            size_bytes=figures.size_bytes,
            **{f"{stage}_ms": round(seconds * 1000, 1) for stage, seconds in figures.stage_s.items()},
        )
