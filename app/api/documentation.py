"""`/openapi.json` and `/docs`: Swagger UI from an installed package, without a network and without inline scripts."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import msgspec
from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation
from litestar.types import ControllerRouterHandler

from app.api.access import SEARCH
from app.api.errors import MissingRoute

ASSETS_PACKAGE = "flask_swagger_ui"
MEDIA_TYPES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kroshka: API</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<link rel="icon" type="image/png" href="/docs/assets/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PUBLIC = "public, max-age=3600"


class ApiDocument:
    """The OpenAPI document, made when it is first asked for."""

    def __init__(self, *, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build

    @cached_property
    def body(self) -> bytes:
        return msgspec.json.encode(self._build())


def assets_folder() -> Path | None:
    """Where the package has its files. The package itself is never imported: it would bring a web framework along."""
    spec = find_spec(ASSETS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "dist"


@get("/openapi.json", opt={"scope": SEARCH}, include_in_schema=False)
async def openapi_json(document: NamedDependency[SkipValidation[ApiDocument]]) -> Response[bytes]:
    """The API's description."""
    return Response(document.body, media_type="application/json")


@get("/docs", opt={"scope": SEARCH}, include_in_schema=False)
async def docs_page() -> Response[bytes]:
    """Swagger UI."""
    headers = {"Content-Security-Policy": POLICY}
    return Response(PAGE.encode(), media_type="text/html", headers=headers)


@get("/docs/start.js", opt={"scope": SEARCH}, include_in_schema=False)
async def docs_start() -> Response[bytes]:
    """Starts Swagger UI; a file of its own, so that no inline script is needed."""
    return Response(START.encode(), media_type="text/javascript", headers={"Cache-Control": PUBLIC})


@get("/docs/assets/{name:str}", opt={"scope": SEARCH}, include_in_schema=False)
async def docs_asset(name: FromPath[str]) -> Response[bytes]:
    """One of Swagger UI's own files. Raises MissingRoute for any other name."""
    folder = assets_folder()
    if folder is None or name not in MEDIA_TYPES:
        raise MissingRoute("no such file")
    content = await anyio.Path(folder / name).read_bytes()
    headers = {"Cache-Control": PUBLIC, "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
    return Response(content, media_type=MEDIA_TYPES[name], headers=headers)


DOCUMENTATION: tuple[ControllerRouterHandler, ...] = (openapi_json, docs_page, docs_start, docs_asset)
