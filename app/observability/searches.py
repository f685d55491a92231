"""One log line and the metrics of each finished search."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from app.observability.metrics import Metrics

LOGGED_STAGES = ("embed", "search", "rerank")


class SearchFigures(Protocol):
    """A finished search in numbers and words of closed sets; retrieval's report is one."""

    @property
    def outcome(self) -> str: ...
    @property
    def door(self) -> str: ...
    @property
    def timings_ms(self) -> Mapping[str, float]: ...
    @property
    def degraded(self) -> Sequence[tuple[str, str]]: ...
    @property
    def dense_candidates(self) -> int: ...
    @property
    def lexical_candidates(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def lexical_blind(self) -> bool: ...
    @property
    def vector_cache(self) -> str | None: ...
    @property
    def top_relevance(self) -> float | None: ...
    @property
    def reranked(self) -> bool: ...


class SearchObserver:
    """Called once with every search that ended, however it ended."""

    def __init__(self, *, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger("kroshka.retrieval")

    def __call__(self, figures: SearchFigures) -> None:
        self._metrics.search_finished(
            outcome=figures.outcome,
            door=figures.door,
            timings_ms=figures.timings_ms,
            degraded=figures.degraded,
            candidates={"dense": figures.dense_candidates, "lexical": figures.lexical_candidates},
            hits=figures.hits,
            lexical_blind=figures.lexical_blind,
            top_relevance=figures.top_relevance,
            reranked=figures.reranked,
        )
        if figures.vector_cache is not None:
            self._metrics.query_vector_looked_up(figures.vector_cache)
        self._log.info("rag_retrieval", **_fields(figures))


def _fields(figures: SearchFigures) -> dict[str, object]:
    times = figures.timings_ms
    stages = {f"{stage}_ms": round(times[stage], 1) for stage in LOGGED_STAGES if stage in times}
    degraded = {"degraded": [f"{stage}:{cause}" for stage, cause in figures.degraded]} if figures.degraded else {}
    return {
        "outcome": figures.outcome,
        "door": figures.door,
        "total_ms": round(times.get("total", 0.0), 1),
        **stages,
        "candidates": figures.dense_candidates + figures.lexical_candidates,
        "result_count": figures.hits,
        **degraded,
    }
