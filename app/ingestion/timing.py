"""How long the stages of one ingest took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StageTimes:
    """Seconds by stage; a stage that runs several times adds up."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the block's time, also when it raises."""
        began_at = self._clock()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self._clock() - began_at
