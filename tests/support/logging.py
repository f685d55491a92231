"""What the process logs, for tests."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from app.observability.logs import OWN_LOGGERS, configure_logging


class Logged:
    """Lines as they were written."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """All lines, or those of one event."""
        lines = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in lines if event is None or line["event"] == event]


@contextmanager
def captured_logs(level: str = "info") -> Iterator[Logged]:
    """The service's own configuration, writing JSON into memory; what was configured before comes back."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, old_level = root.handlers[:], root.level
    try:
        configure_logging(level=level, log_format="json", stream=stream)
        yield Logged(stream)
    finally:
        root.handlers[:] = handlers
        root.setLevel(old_level)
        for name in OWN_LOGGERS:
            logging.getLogger(name).setLevel(logging.NOTSET)
        structlog.reset_defaults()
