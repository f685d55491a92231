"""`POST /v1/documents`."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from litestar import Request, post
from litestar.di import NamedDependency
from litestar.openapi.spec import (
    OpenAPIFormat,
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    Reference,
    RequestBody,
    Schema,
)
from litestar.params import QueryParameter, SkipValidation

from app.api.access import WRITE
from app.api.openapi import problems
from app.api.services import Services
from app.api.uploading import LIST_FIELDS, MAX_DESCRIPTION, UploadForm
from app.api.views import UploadAnswer
from app.domain.documents import DEFAULT_WORKSPACE


def _text(description: str, **bounds: Any) -> Schema:
    return Schema(type=OpenAPIType.STRING, description=description, **bounds)


FIELDS: dict[str, Schema | Reference] = {
    "collectionId": _text("Required here or as a query parameter.", format=OpenAPIFormat.UUID),
    "file": Schema(
        type=OpenAPIType.ARRAY,
        items=Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY),
        description="One part for each file.",
    ),
    "description": _text("Of every file in this form.", max_length=MAX_DESCRIPTION),
    "attributes": _text("A JSON object."),
    **{name: Schema(type=OpenAPIType.ARRAY, items=_text("An id.")) for name in LIST_FIELDS},
}
FORM = Schema(type=OpenAPIType.OBJECT, required=["file"], properties=FIELDS)


@dataclass
class UploadOperation(Operation):
    """Adds the form that the handler reads by itself."""

    def __post_init__(self) -> None:
        content = {"multipart/form-data": OpenAPIMediaType(schema=FORM)}
        self.request_body = RequestBody(content=content, required=True, description="Fields come before files.")


@post(
    "/v1/documents",
    operation_id="uploadDocuments",
    operation_class=UploadOperation,
    opt={"scope": WRITE},
    status_code=202,
    responses=problems(404, body=True),
    request_max_body_size=None,
    tags=["documents"],
)
async def upload(
    request: Request[Any, Any, Any],
    services: NamedDependency[SkipValidation[Services]],
    collection_id: Annotated[UUID | None, QueryParameter(name="collectionId")] = None,
) -> UploadAnswer:
    """Stores files and queues their indexing.

    One entry a file: `queued`, `unchanged` (the same bytes are indexed already) or `refused` with its problem. A
    refused file does not stop the others. A file under a name that the collection has becomes its next revision.
    """
    form = UploadForm(
        uploads=services.uploads,
        catalog=services.catalog,
        workspace_id=DEFAULT_WORKSPACE,
        collection_id=collection_id,
        max_file_bytes=services.deployment.max_upload_bytes,
    )
    return UploadAnswer(documents=await form.read(request))
