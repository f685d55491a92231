"""`/v1/documents`: everything but the upload."""

import re
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, delete, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, SkipValidation
from litestar.response import Stream

from app.api.access import SEARCH, WRITE
from app.api.disposition import attachment
from app.api.openapi import problems
from app.api.paging import Cursor, Limit, offset_of
from app.api.services import Services
from app.api.streams import begun
from app.api.views import ChunkList, Deleting, DocumentList, DocumentView
from app.domain.documents import DEFAULT_WORKSPACE

Status = Literal["queued", "parsing", "chunking", "embedding", "indexing", "indexed", "failed", "cancelled", "deleting"]
MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
OCTETS = "application/octet-stream"


class DocumentsController(Controller):
    """Files and what became of them."""

    path = "/v1/documents"
    tags = ("documents",)

    @get(operation_id="listDocuments", opt={"scope": SEARCH}, responses=problems(404))
    async def list_documents(
        self,
        services: NamedDependency[SkipValidation[Services]],
        collection_id: Annotated[UUID | None, QueryParameter(name="collectionId")] = None,
        q: Annotated[str | None, QueryParameter(max_length=500, description="Part of the name, in any case.")] = None,
        status: Annotated[Status | None, QueryParameter(description="Only documents in this state.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> DocumentList:
        """Documents, newest first."""
        page = await services.catalog.documents(
            DEFAULT_WORKSPACE, collection_id=collection_id, name_contains=q, status=status, limit=limit, cursor=cursor
        )
        return DocumentList(items=tuple(DocumentView.of(item) for item in page.items), next_cursor=page.next_cursor)

    @get("/{document_id:uuid}", operation_id="getDocument", opt={"scope": SEARCH}, responses=problems(404))
    async def get_document(
        self, services: NamedDependency[SkipValidation[Services]], document_id: FromPath[UUID]
    ) -> DocumentView:
        """One document: its status, and beside it what a replacement on its way has come to."""
        return DocumentView.of(await services.catalog.document(DEFAULT_WORKSPACE, document_id))

    @get(
        "/{document_id:uuid}/content",
        operation_id="getDocumentContent",
        opt={"scope": SEARCH},
        responses=problems(404),
        media_type=OCTETS,
        response_description="The original file",
    )
    async def get_content(
        self, services: NamedDependency[SkipValidation[Services]], document_id: FromPath[UUID]
    ) -> Stream:
        """The original, to be saved. It never runs on this origin."""
        original = await services.catalog.original(DEFAULT_WORKSPACE, document_id)
        return Stream(
            await begun(services.blobs.stream(original.blob_key)),
            headers={
                "Content-Disposition": attachment(original.source_name),
                # As `media_type` a text would be called UTF-8, whatever it is.
                "Content-Type": original.media_type if MEDIA_TYPE.fullmatch(original.media_type) else OCTETS,
                "Content-Length": str(original.size_bytes),
                "Content-Security-Policy": "sandbox; default-src 'none'",
                "ETag": f'"{original.sha256}"',
            },
        )

    @get(
        "/{document_id:uuid}/chunks", operation_id="listDocumentChunks", opt={"scope": SEARCH}, responses=problems(404)
    )
    async def list_chunks(
        self,
        services: NamedDependency[SkipValidation[Services]],
        document_id: FromPath[UUID],
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ChunkList:
        """Passages of the current revision, in order; none while nothing is indexed yet."""
        start = offset_of(cursor)
        rows = await services.catalog.chunks(DEFAULT_WORKSPACE, document_id)
        return ChunkList.page(rows, start=start, limit=limit)

    @delete(
        "/{document_id:uuid}",
        operation_id="deleteDocument",
        opt={"scope": WRITE},
        status_code=202,
        responses=problems(404),
    )
    async def delete_document(
        self, services: NamedDependency[SkipValidation[Services]], document_id: FromPath[UUID]
    ) -> Deleting:
        """No search finds it from now on; what is left of it is removed in the background."""
        job_id = await services.catalog.delete_document(DEFAULT_WORKSPACE, document_id)
        return Deleting(id=document_id, job_id=job_id)
