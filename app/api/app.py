"""The application: controllers, one set of rules for all of them, and the edge around it."""

from typing import Any, cast

from litestar import Litestar
from litestar.datastructures import MutableScopeHeaders
from litestar.di import Provide
from litestar.routes import HTTPRoute
from litestar.types import Message, Scope

from app.api.access import KeylessAccess
from app.api.asgi import App
from app.api.controllers import HANDLERS
from app.api.documentation import DOCUMENTATION, ApiDocument
from app.api.edge import Edge
from app.api.guards import ScopeGuard
from app.api.openapi import build_document
from app.api.problems import problem_response
from app.api.requests import StrictRequest, refuse_unknown_parameters
from app.api.services import Services

MAX_BODY_BYTES = 8_000_000
"""Of JSON bodies: 32 searches of the greatest length. Uploads have their own bound."""


def build(services: Services) -> App:
    """Wires everything; nothing is asked of the services yet."""
    arguments = _arguments(services)
    document = ApiDocument(build=lambda: build_document(HANDLERS, **arguments))
    arguments["dependencies"] = arguments["dependencies"] | {
        "document": Provide(lambda: document, sync_to_thread=False, use_cache=True)
    }
    inner = Litestar(
        [*HANDLERS, *DOCUMENTATION],
        openapi_config=None,
        logging_config=None,
        before_send=[name_all_methods],
        **arguments,
    )
    return Edge(
        app=cast("App", inner),
        access=KeylessAccess(anonymous_search=services.deployment.allow_anonymous == "search"),
        metrics=services.metrics,
    )


def _arguments(services: Services) -> dict[str, Any]:
    return {
        "dependencies": {"services": Provide(lambda: services, sync_to_thread=False, use_cache=True)},
        "exception_handlers": {Exception: problem_response},
        "guards": [ScopeGuard(metrics=services.metrics), refuse_unknown_parameters],
        "request_class": StrictRequest,
        "request_max_body_size": MAX_BODY_BYTES,
    }


async def name_all_methods(message: Message, scope: Scope) -> None:
    """Litestar's answer to OPTIONS names the methods of one of the handlers of an address only."""
    if message["type"] == "http.response.start" and scope.get("method") == "OPTIONS" and "path_template" in scope:
        routes = [route for route in scope["litestar_app"].routes if isinstance(route, HTTPRoute)]
        methods = {m for route in routes if route.path_format == scope["path_template"] for m in route.methods}
        MutableScopeHeaders.from_message(message)["allow"] = ", ".join(sorted(methods))
