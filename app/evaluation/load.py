"""Searches beside other work: how long a user waits while documents are being indexed."""

import asyncio
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from app.evaluation.measures import percentile
from app.evaluation.modes import MODES
from app.evaluation.questions import Question
from app.evaluation.report import LoadView
from app.evaluation.runner import Conditions, Search, ask

PAUSE_S = 0.3
TOP_K = 10


class SearchLoad:
    """One question after the other with a pause between them, in the best mode, until cancelled."""

    def __init__(
        self,
        *,
        search: Search,
        questions: Sequence[Question],
        conditions: Conditions,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._search, self._questions, self._pause_s, self._clock = search, questions, pause_s, clock
        self._conditions = replace(conditions, top_k=TOP_K)
        self._latencies_ms: list[float] = []

    async def run(self) -> None:
        """Answers before the first document is visible do not count: nothing was searched."""
        asked = 0
        while True:
            question = self._questions[asked % len(self._questions)]
            asked += 1
            mode = MODES["hybrid+rerank"]
            (answer,) = await ask(self._search, [question], mode, self._conditions, clock=self._clock)
            if answer.units:
                self._latencies_ms.append(answer.latency_ms)
            await asyncio.sleep(self._pause_s)

    def view(self) -> LoadView | None:
        """None when no search found anything."""
        if not self._latencies_ms:
            return None
        return LoadView(
            searches=len(self._latencies_ms),
            p50_ms=round(percentile(self._latencies_ms, 50), 1),
            p95_ms=round(percentile(self._latencies_ms, 95), 1),
        )
