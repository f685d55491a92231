"""The OpenAPI document: declared problems, examples, and the tidying of what Litestar generates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litestar import Litestar
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example, License, Server, Tag
from litestar.types import ControllerRouterHandler

from app import __version__
from app.api.problems import PROBLEM_JSON, TYPE_PREFIX, FieldError, Problem

DESCRIPTIONS = {
    400: "The body is not JSON, or not a form.",
    403: "The caller may not do this.",
    404: "There is no such object, or the caller may not see it.",
    409: "The state of the object does not allow this now.",
    412: "`If-Match` names another version than the one that is stored.",
    413: "The body is too large.",
    415: "The body has a content type that this route does not take.",
    422: "A field or parameter is unknown, missing or out of its bounds; `errors` names it.",
    500: "Something went wrong here; the log has it under the answer's `X-Request-Id`.",
    503: "A part of the service does not answer. `Retry-After` says when to come again.",
}
TITLES = {
    400: ("malformed_body", "Bad Request"),
    403: ("forbidden", "Forbidden"),
    404: ("not_found", "Not Found"),
    409: ("conflict", "Conflict"),
    412: ("precondition_failed", "Precondition Failed"),
    413: ("limit_exceeded", "Request Entity Too Large"),
    415: ("unsupported_media_type", "Unsupported Media Type"),
    422: ("invalid_input", "Unprocessable Entity"),
    500: ("internal", "Internal Server Error"),
    503: ("index_unavailable", "Service Unavailable"),
}
ALWAYS = (403, 422, 500, 503)
BODY = (400, 413, 415)
TAGS = (
    ("collections", "Named sets of documents."),
    ("documents", "Files and what became of them."),
    ("search", "Cited passages."),
    ("jobs", "Work in the background."),
    ("settings", "Retrieval knobs, layered."),
    ("status", "What is stored, loaded and working."),
)


def problems(*statuses: int, body: bool = False) -> dict[int, ResponseSpec]:
    """Declares the problems of a route: those that every route has, and these. `body`: it takes a body."""
    declared = sorted({*ALWAYS, *statuses, *(BODY if body else ())})
    return {status: _problem_spec(status) for status in declared}


def answer(data: Any, description: str, value: Any) -> ResponseSpec:
    """A good answer with an example."""
    example = Example(summary=description, value=value)
    return ResponseSpec(data, description=description, generate_examples=False, examples=[example])


def build_document(handlers: Sequence[ControllerRouterHandler], **arguments: Any) -> dict[str, Any]:
    """The document of these handlers. A second application makes it, so that none of Litestar's own pages (which
    load scripts from elsewhere and answer 404 in HTML) are ever served."""
    described = Litestar(list(handlers), openapi_config=_config(), logging_config=None, **arguments)
    return _with_closed_bodies(_without_foreign_errors(described.openapi_schema.to_schema()))


def _config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Kroshka",
        version=__version__,
        summary="Documents go in, cited passages come out, each with its breadcrumb",
        description="JSON in camelCase, times in RFC 3339 UTC, errors as `application/problem+json` (RFC 9457).",
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        servers=[Server(url="/")],
        tags=[Tag(name=name, description=text) for name, text in TAGS],
        use_handler_docstrings=True,
    )


def _problem_spec(status: int) -> ResponseSpec:
    code, title = TITLES[status]
    errors = (FieldError(pointer="/topK", message="Expected `int` <= 200", limit=200),) if status == 422 else ()
    problem: dict[str, Any] = {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": DESCRIPTIONS[status],
    }
    if errors:
        problem["errors"] = [{"pointer": e.pointer, "message": e.message, "limit": e.limit} for e in errors]
    return ResponseSpec(
        Problem,
        description=DESCRIPTIONS[status],
        media_type=PROBLEM_JSON,
        generate_examples=False,
        examples=[Example(summary=title, value=problem)],
    )


def _without_foreign_errors(document: dict[str, Any]) -> dict[str, Any]:
    """Litestar adds its own 400 to every route with parameters; ours answer 422 with a problem."""
    for operation in _operations(document):
        operation["responses"] = {
            status: response for status, response in operation["responses"].items() if not _is_foreign(status, response)
        }
    return document


def _is_foreign(status: str, response: Mapping[str, Any]) -> bool:
    return status >= "400" and PROBLEM_JSON not in response.get("content", {})


def _with_closed_bodies(document: dict[str, Any]) -> dict[str, Any]:
    """Litestar does not say that unknown fields of a body are refused."""
    schemas = document["components"]["schemas"]
    bodies = [name for operation in _operations(document) for name in _schema_names(operation.get("requestBody", {}))]
    while bodies:
        schema = schemas[bodies.pop()]
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
            bodies.extend(_schema_names(schema))
    return document


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from (operation for operation in methods.values() if isinstance(operation, dict))


def _schema_names(value: Any) -> Iterator[str]:
    """Names of the components that a part of the document refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _schema_names(inner)
