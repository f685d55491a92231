"""Structured logs that never hold what people wrote."""

import io
import logging

import pytest
import structlog

from app.observability.logs import PRIVATE_KEYS, configure_logging
from tests.support.logging import captured_logs

CANARY = "hunter2-крошка"


def raise_with_words() -> None:
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        raise ValueError(f"cannot read {CANARY}") from error


def test_a_line_is_json_with_time_level_and_logger() -> None:
    with captured_logs() as logged:
        structlog.get_logger("kroshka.test").info("something_happened", count=3, route="/v1/search")

    (line,) = logged.lines()
    assert (line["event"], line["level"], line["logger"]) == ("something_happened", "info", "kroshka.test")
    assert (line["count"], line["route"]) == (3, "/v1/search")
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("key", sorted(PRIVATE_KEYS - {"message"}))
def test_a_value_under_a_name_that_holds_somebodys_words_is_hidden(key: str) -> None:
    with captured_logs() as logged:
        structlog.get_logger("kroshka.test").info("event", **{key: CANARY})

    assert CANARY not in logged.text
    assert logged.lines()[0][key] == "***"


def test_an_exception_is_its_type_its_cause_and_places_but_not_its_words() -> None:
    with captured_logs() as logged:
        try:
            raise_with_words()
        except ValueError:
            structlog.get_logger("kroshka.test").error("request_failed", exc_info=True)

    (line,) = logged.lines()
    assert (line["exception"], line["caused_by"]) == ("ValueError", "KeyError")
    assert any("raise_with_words" in frame for frame in line["frames"])
    assert CANARY not in logged.text


def test_other_libraries_speak_through_the_same_processors_and_from_warnings_on() -> None:
    with captured_logs("debug") as logged:
        logging.getLogger("httpx").info("GET /%s", CANARY)
        try:
            raise_with_words()
        except ValueError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    (line,) = logged.lines()
    assert (line["logger"], line["exception"]) == ("uvicorn.error", "ValueError")
    assert CANARY not in logged.text


def test_lines_under_the_level_are_not_written() -> None:
    with captured_logs("warning") as logged:
        log = structlog.get_logger("kroshka.test")
        log.info("quiet")
        log.warning("loud")

    assert [line["event"] for line in logged.lines()] == ["loud"]


def test_the_console_form_is_for_people() -> None:
    stream = io.StringIO()
    with captured_logs():
        configure_logging(log_format="console", stream=stream)
        structlog.get_logger("kroshka.test").info("ready", seconds=1.5)

    assert "ready" in stream.getvalue()
    assert "seconds=1.5" in stream.getvalue()
