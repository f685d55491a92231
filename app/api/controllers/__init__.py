"""The routes: each is one call and one conversion."""

from litestar.types import ControllerRouterHandler

from app.api.controllers.collections import CollectionsController
from app.api.controllers.documents import DocumentsController
from app.api.controllers.health import alive, metrics, ready
from app.api.controllers.jobs import JobsController
from app.api.controllers.search import SearchController, knowledge_search
from app.api.controllers.settings import SettingsController
from app.api.controllers.status import status
from app.api.controllers.uploads import upload

HANDLERS: tuple[ControllerRouterHandler, ...] = (
    CollectionsController,
    DocumentsController,
    JobsController,
    SearchController,
    SettingsController,
    alive,
    knowledge_search,
    metrics,
    ready,
    status,
    upload,
)
