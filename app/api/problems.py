"""Errors as application/problem+json (RFC 9457). The only file that knows the HTTP status of an error."""

import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException
from litestar.params import ParameterKwarg
from msgspec import UNSET, Struct, UnsetType

from app.api.errors import (
    BodyTooLarge,
    ClientGone,
    Forbidden,
    LateField,
    MalformedBody,
    MissingRoute,
    NotReady,
    UnsupportedBody,
)
from app.domain import errors

PROBLEM_JSON = "application/problem+json"
TYPE_PREFIX = "urn:kroshka:problem:"

STATUS_BY_ERROR: dict[type[Exception], int] = {
    BodyTooLarge: 413,
    ClientGone: 499,
    Forbidden: 403,
    MalformedBody: 400,
    MissingRoute: 404,
    NotReady: 503,
    UnsupportedBody: 415,
    errors.InvalidInput: 422,
    errors.NotFound: 404,
    errors.PreconditionFailed: 412,
    errors.Conflict: 409,
    errors.JobCancelled: 409,
    errors.UnsupportedFormat: 415,
    errors.DocumentError: 422,
    errors.UpstreamRefused: 502,
    errors.ConfigurationError: 500,
    errors.TransientError: 503,
    errors.KroshkaError: 500,
}
"""The nearest base class counts."""


class FieldError(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a request. `pointer` is a JSON pointer, or the name of a parameter or header."""

    pointer: str
    message: str
    limit: float | int | str | UnsetType | None = UNSET


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457. `type` is a stable name of the kind of problem; `instance` the path that was asked for."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | UnsetType = UNSET
    errors: tuple[FieldError, ...] | UnsetType = UNSET
    documents: tuple[Any, ...] | UnsetType = UNSET


def problem_of(
    error: Exception,
    *,
    instance: str | UnsetType = UNSET,
    parameter_names: Mapping[str, str] = MappingProxyType({}),
) -> Problem:
    """What a caller may know of an error. Of one that nobody foresaw: nothing.

    `parameter_names` are those that callers write, by the handler's own.
    """
    if isinstance(error, HTTPException):
        return _of_framework(error, instance, parameter_names)
    status = status_of(error)
    known = isinstance(error, errors.KroshkaError)
    return Problem(
        type=TYPE_PREFIX + (error.code if isinstance(error, errors.KroshkaError) else "internal"),
        title=_title(status),
        status=status,
        detail=_detail(error)
        if known
        else "something went wrong here; the log has it under this answer's X-Request-Id",
        instance=instance,
        errors=_field_errors(error),
        documents=error.accepted if isinstance(error, LateField) and error.accepted else UNSET,
    )


def status_of(error: Exception) -> int:
    """The status of the error's nearest known class; 500 for the unknown."""
    if isinstance(error, errors.LimitExceeded) and error.unit == "bytes":
        return 413
    return next((STATUS_BY_ERROR[kind] for kind in type(error).__mro__ if kind in STATUS_BY_ERROR), 500)


def problem_headers(error: Exception, status: int) -> dict[str, str]:
    """Every 429 and 503 says when to come again."""
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status in (429, 503):
        wait_s = error.retry_after_s if isinstance(error, errors.TransientError) else 1.0
        headers.setdefault("Retry-After", str(max(1, math.ceil(wait_s))))
    return headers


def problem_response(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Litestar's handler of all exceptions."""
    problem = problem_of(error, instance=request.url.path, parameter_names=_parameter_names(request))
    if problem.status >= 500 and not isinstance(error, errors.TransientError):
        structlog.get_logger("kroshka.http").error("request_failed", exc_info=error)
    return Response(
        content=msgspec.json.encode(problem),
        status_code=problem.status,
        media_type=PROBLEM_JSON,
        headers=problem_headers(error, problem.status),
    )


def _parameter_names(request: Request[Any, Any, Any]) -> dict[str, str]:
    """Empty when no route was found."""
    handler = request.scope.get("route_handler")
    fields = {} if handler is None else handler.parsed_fn_signature.parameters
    return {
        name: kwarg.name
        for name, field in fields.items()
        if isinstance(kwarg := field.kwarg_definition, ParameterKwarg) and kwarg.name
    }


def _detail(error: Exception) -> str:
    return error.message if isinstance(error, errors.InvalidInput) and not error.pointer else str(error)


def _title(status: int) -> str:
    if status == 499:
        return "Client Closed Request"
    return HTTPStatus(status).phrase


def _field_errors(error: Exception) -> tuple[FieldError, ...] | UnsetType:
    if not isinstance(error, errors.InvalidInput):
        return UNSET
    limit = UNSET if error.limit is None else error.limit
    return (FieldError(pointer=error.pointer, message=error.message, limit=limit),)


def _of_framework(error: HTTPException, instance: str | UnsetType, names: Mapping[str, str]) -> Problem:
    """Litestar's own errors: routing, parameters, body size."""
    details = _parameter_errors(error, names) if isinstance(error, ValidationException) else UNSET
    status = 422 if details is not UNSET else error.status_code
    detail = _framework_detail(error, status)
    if details is not UNSET:
        detail = "; ".join(f"{e.pointer}: {e.message}" if e.pointer else e.message for e in details)
    kind = "invalid_input" if status == 422 else re.sub(r"\W+", "_", _title(status).lower())
    return Problem(
        type=TYPE_PREFIX + kind,
        title=_title(status),
        status=status,
        detail=detail,
        instance=instance,
        errors=details,
    )


def _framework_detail(error: HTTPException, status: int) -> str:
    if isinstance(error, NotFoundException):
        return "nothing is served under this address"
    if isinstance(error, MethodNotAllowedException):
        return f"this address answers {_allowed(error)} only"
    return error.detail if status < 500 else _title(status)


def _allowed(error: HTTPException) -> str:
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    return headers.get("allow", "other methods")


def _parameter_errors(error: ValidationException, names: Mapping[str, str]) -> tuple[FieldError, ...] | UnsetType:
    entries = error.extra if isinstance(error.extra, list) else []
    found = [_parameter_error(entry, names) for entry in entries if isinstance(entry, dict)]
    return tuple(found) if found else UNSET


def _parameter_error(entry: dict[str, Any], names: Mapping[str, str]) -> FieldError:
    key, message = str(entry.get("key", "")), str(entry.get("message", "is not valid"))
    if key == "data":
        return FieldError(pointer="", message="a JSON body is required")
    return FieldError(pointer=names.get(key, key), message=message, limit=limit_in(message))


def limit_in(message: str) -> int | float | UnsetType:
    """The bound in one of msgspec's messages: `Expected `int` <= 200`."""
    found = re.search(r"(?:<=|>=|<|>|length) (-?\d+(?:\.\d+)?)", message)
    if found is None:
        return UNSET
    number = float(found[1])
    return int(number) if number.is_integer() else number
