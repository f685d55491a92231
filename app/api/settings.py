"""How the layered knobs are shown."""

from collections.abc import Mapping
from uuid import UUID

from msgspec import UNSET

from app.api.errors import Forbidden
from app.api.figures import all_collections
from app.api.services import Services
from app.api.views import ReindexNote, SettingsView
from app.config.knobs import Knob, RagConfig
from app.config.rows import changed_for_new_documents_only
from app.config.service import PLATFORM, FreshConfig
from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import InvalidInput, WorkspaceNotFound
from app.domain.search import KnobValue


def settings_workspace(text: str | None) -> UUID:
    """The workspace of a request. Raises Forbidden for the platform's row, which no caller without a key may see."""
    if text is None:
        return DEFAULT_WORKSPACE
    if text == PLATFORM:
        raise Forbidden("the platform's settings need a key of the scope platform", reason="scope")
    try:
        workspace_id = UUID(text)
    except ValueError as error:
        raise InvalidInput("workspaceId", "is not a UUID") from error
    if workspace_id != DEFAULT_WORKSPACE:
        raise WorkspaceNotFound(workspace_id)
    return workspace_id


def settings_view(
    catalogue: Mapping[str, Knob], workspace_id: UUID, current: FreshConfig, note: ReindexNote | None
) -> SettingsView:
    """Every knob by its camelCase name."""
    resolved = current.resolved
    config = {
        knob.json_name: KnobValue(value=getattr(resolved.config, name), layer=resolved.layers[name])
        for name, knob in catalogue.items()
    }
    return SettingsView(
        workspace_id=workspace_id,
        version=current.version,
        config=config,
        overrides=current.overrides,
        warnings=resolved.warnings,
        reindex=UNSET if note is None else note,
    )


async def reindex_note(services: Services, before: RagConfig, after: RagConfig) -> ReindexNote | None:
    """None when the change reaches everything."""
    changed = changed_for_new_documents_only(services.config.catalogue, before, after)
    if not changed:
        return None
    collections = await all_collections(services.catalog, DEFAULT_WORKSPACE)
    return ReindexNote(knobs=tuple(changed), documents=sum(collection.documents for collection in collections))
