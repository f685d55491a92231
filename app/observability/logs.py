"""Structured logs on standard error. Never a query, a text, a name, a vector or a key."""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

OWN_LOGGERS = ("kroshka", "app")
"""Parents of all loggers of the service."""

PRIVATE_KEYS = frozenset(
    {
        "answer",
        "attributes",
        "authorization",
        "body",
        "chunk",
        "content",
        "cookie",
        "description",
        "document",
        "file",
        "filename",
        "key",
        "message",
        "name",
        "passage",
        "password",
        "payload",
        "query",
        "question",
        "secret",
        "source_name",
        "text",
        "title",
        "token",
        "user",
        "value",
        "vector",
    }
)
HIDDEN = "***"


def configure_logging(*, level: str = "info", log_format: str = "auto", stream: TextIO | None = None) -> None:
    """For the whole process, to be called once by an entry point.

    `level` is debug, info, warning or error. `log_format` is json, console, or auto: console on a terminal.
    Other libraries speak from warnings on, at any level: a database driver's debug lines hold what people wrote.
    """
    out = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    as_console = log_format == "console" or (log_format == "auto" and out.isatty())
    shared = shared_processors()
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(as_console, out)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(number)


def shared_processors() -> list[Processor]:
    """What every line goes through before it is rendered."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_private_values,
        describe_exception,
    ]


def hide_private_values(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The last guard: a value under a name that usually holds somebody's words is not written."""
    for key in event:
        if key in PRIVATE_KEYS:
            event[key] = HIDDEN
    return event


def describe_exception(_logger: object, _method: str, event: MutableMapping[str, Any]) -> EventDict:
    """Type and places of an exception, without its message: messages quote what people wrote."""
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["exception"] = type(error).__qualname__
        event["frames"] = [
            f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        cause = error.__cause__ or error.__context__
        if cause is not None:
            event["caused_by"] = type(cause).__qualname__
    return event


def _renderer(as_console: bool, out: TextIO) -> Processor:
    if as_console:
        return structlog.dev.ConsoleRenderer(colors=out.isatty())
    return structlog.processors.JSONRenderer(ensure_ascii=False)
