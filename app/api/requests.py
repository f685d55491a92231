"""Reading requests strictly: unknown fields and parameters are errors, and `"5"` is not a number."""

import re
from typing import Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers.base import BaseRouteHandler
from litestar.params import ParameterKwarg, QueryParameter

from app.api.errors import BodyTooLarge, ClientGone, MalformedBody, UnsupportedBody
from app.api.problems import limit_in
from app.domain.errors import InvalidInput, UnknownField

UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `(?P<path>.*)`)?$", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(?P<name>.*?)`(?: - at `(?P<path>.*)`)?$", re.DOTALL)
OTHER = re.compile(r"(?P<message>.*?)(?: - at `(?P<path>.*)`)?$", re.DOTALL)


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body straight into the handler's declared type."""

    async def json(self) -> Any:
        """Raises UnsupportedBody, MalformedBody, UnknownField or InvalidInput."""
        if not is_json(self.headers.get("content-type", "")):
            raise UnsupportedBody(expected="application/json")
        field = self.route_handler.parsed_data_field
        return decode_json(await self.body(), Any if field is None else field.annotation)

    async def body(self) -> bytes:
        """Raises BodyTooLarge, or ClientGone when the caller leaves before the end."""
        try:
            return await super().body()
        except InternalServerException as error:
            raise ClientGone("the client closed the connection") from error
        except RequestEntityTooLarge as error:
            raise BodyTooLarge(limit=self.route_handler.resolve_request_max_body_size() or 0) from error


def is_json(content_type: str) -> bool:
    """`application/json`, or a type with the suffix `+json`."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def decode_json(body: bytes, wanted: Any) -> Any:
    """The body as `wanted`, without any conversion between JSON's types."""
    try:
        return msgspec.json.decode(body, type=wanted)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedBody(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedBody("the body's JSON is nested too deeply") from error


def _explained(message: str) -> InvalidInput:
    if (found := UNKNOWN.match(message)) is not None:
        return UnknownField(f"{pointer(found['path'])}/{found['name']}")
    if (found := MISSING.match(message)) is not None:
        return InvalidInput(f"{pointer(found['path'])}/{found['name']}", "is required")
    found = OTHER.match(message)
    path, text = (found["path"], found["message"]) if found else (None, message)
    limit = limit_in(text)
    return InvalidInput(pointer(path), text, limit=None if limit is msgspec.UNSET else limit)


def pointer(path: str | None) -> str:
    """msgspec's `$.searches[3].topK` as the JSON pointer `/searches/3/topK`; the whole body is the empty pointer.

    Inside an object without declared fields msgspec does not tell the name (`$[...]`): its place is the last known.
    """
    return re.sub(r"\.|\[", "/", (path or "$")[1:].partition("[...]")[0]).replace("]", "")


async def refuse_unknown_parameters(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A guard. Raises UnknownField for a parameter that the route does not have, InvalidInput for one given twice."""
    known = known_parameters(handler)
    seen: set[str] = set()
    for name, _ in connection.query_params.multi_items():
        if name not in known:
            raise UnknownField(name, known=tuple(sorted(known)))
        if name in seen:
            raise InvalidInput(name, "is given more than once")
        seen.add(name)


def known_parameters(handler: BaseRouteHandler) -> frozenset[str]:
    """Names of the handler's query parameters, as callers write them."""
    return frozenset(
        kwarg.name or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if isinstance(kwarg := field.kwarg_definition, ParameterKwarg) and isinstance(kwarg, QueryParameter)
    )
