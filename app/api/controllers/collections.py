"""`/v1/collections`."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, delete, get, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath, SkipValidation

from app.api.access import SEARCH, WRITE
from app.api.bodies import NewCollection
from app.api.openapi import problems
from app.api.paging import Cursor, Limit
from app.api.services import Services
from app.api.views import CollectionList, CollectionView, Deleting
from app.domain.documents import DEFAULT_WORKSPACE

EXAMPLE = Example(value={"name": "Регламенты", "description": "Operations and complaints"})
Body = Annotated[NewCollection, BodyKwarg(media_type=RequestEncodingType.JSON, examples=[EXAMPLE])]


class CollectionsController(Controller):
    """Named sets of documents."""

    path = "/v1/collections"
    tags = ("collections",)

    @get(operation_id="listCollections", opt={"scope": SEARCH}, responses=problems())
    async def list_collections(
        self, services: NamedDependency[SkipValidation[Services]], limit: Limit = 50, cursor: Cursor = None
    ) -> CollectionList:
        """Collections by name, with what each holds."""
        page = await services.catalog.collections(DEFAULT_WORKSPACE, limit=limit, cursor=cursor)
        return CollectionList(items=tuple(CollectionView.of(item) for item in page.items), next_cursor=page.next_cursor)

    @post(operation_id="createCollection", opt={"scope": WRITE}, responses=problems(409, body=True))
    async def create_collection(
        self, services: NamedDependency[SkipValidation[Services]], data: Body
    ) -> CollectionView:
        """A new collection. Its name is unique, without regard to case."""
        created = await services.catalog.create_collection(DEFAULT_WORKSPACE, data.name, data.description)
        return CollectionView.of(created)

    @get("/{collection_id:uuid}", operation_id="getCollection", opt={"scope": SEARCH}, responses=problems(404))
    async def get_collection(
        self, services: NamedDependency[SkipValidation[Services]], collection_id: FromPath[UUID]
    ) -> CollectionView:
        """One collection, with what it holds."""
        return CollectionView.of(await services.catalog.collection(DEFAULT_WORKSPACE, collection_id))

    @delete(
        "/{collection_id:uuid}",
        operation_id="deleteCollection",
        opt={"scope": WRITE},
        status_code=202,
        responses=problems(404),
    )
    async def delete_collection(
        self, services: NamedDependency[SkipValidation[Services]], collection_id: FromPath[UUID]
    ) -> Deleting:
        """No search finds its documents from now on; they are removed in the background."""
        await services.catalog.delete_collection(DEFAULT_WORKSPACE, collection_id)
        return Deleting(id=collection_id)
