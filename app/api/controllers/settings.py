"""`/v1/settings/rag`."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, patch, put
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, HeaderParameter, QueryParameter, SkipValidation

from app.api.access import SEARCH, WRITE
from app.api.openapi import problems
from app.api.preconditions import etag_of, expected_version
from app.api.services import Services
from app.api.settings import reindex_note, settings_view, settings_workspace
from app.api.views import SettingsView

Overrides = Annotated[
    dict[str, Any],
    BodyKwarg(
        media_type=RequestEncodingType.JSON,
        description="Knobs by camelCase name.",
        examples=[Example(value={"searchTopK": 12, "chunkSize": 700})],
    ),
]
Workspace = Annotated[str | None, QueryParameter(name="workspaceId", description="Default: the caller's workspace.")]
IfMatch = Annotated[str | None, HeaderParameter(name="If-Match", description="The ETag that `GET` gave.")]


class SettingsController(Controller):
    """Retrieval knobs: defaults, environment, platform, workspace."""

    path = "/v1/settings/rag"
    tags = ("settings",)

    @get(operation_id="getRagSettings", opt={"scope": SEARCH}, responses=problems(404))
    async def get_settings(
        self, services: NamedDependency[SkipValidation[Services]], workspace: Workspace = None
    ) -> Response[SettingsView]:
        """The effective value of every knob and the layer that it came from."""
        return await _answer(services, settings_workspace(workspace))

    @put(operation_id="replaceRagSettings", opt={"scope": WRITE}, responses=problems(404, 412, body=True))
    async def replace_settings(
        self,
        services: NamedDependency[SkipValidation[Services]],
        data: Overrides,
        workspace: Workspace = None,
        if_match: IfMatch = None,
    ) -> Response[SettingsView]:
        """Replaces the workspace's row: knobs that are not named fall back to the layers below."""
        workspace_id = settings_workspace(workspace)
        before = await services.config.fresh(workspace_id)
        expected = expected_version(if_match, before.version)
        await services.config.replace(workspace_id, data, expected_version=expected)
        return await _answer(services, workspace_id, before=before)

    @patch(operation_id="changeRagSettings", opt={"scope": WRITE}, responses=problems(404, 412, body=True))
    async def change_settings(
        self,
        services: NamedDependency[SkipValidation[Services]],
        data: Overrides,
        workspace: Workspace = None,
        if_match: IfMatch = None,
    ) -> Response[SettingsView]:
        """Changes single knobs; null takes one out of the row (RFC 7396)."""
        workspace_id = settings_workspace(workspace)
        before = await services.config.fresh(workspace_id)
        expected = expected_version(if_match, before.version)
        await services.config.change(workspace_id, data, expected_version=expected)
        return await _answer(services, workspace_id, before=before)


async def _answer(services: Services, workspace_id: UUID, before: Any = None) -> Response[SettingsView]:
    current = await services.config.fresh(workspace_id)
    note = None if before is None else await reindex_note(services, before.resolved.config, current.resolved.config)
    view = settings_view(services.config.catalogue, workspace_id, current, note)
    return Response(view, headers={"ETag": etag_of(current.version)})
