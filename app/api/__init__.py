"""The HTTP surface: application factory, edge, problems, controllers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.api.asgi import App
    from app.api.services import Services


def create_app(services: "Services") -> "App":
    """The ASGI application. Litestar is imported here and not before: a starting door must open at once."""
    from app.api.app import build

    return build(services)
