"""What the API takes, in camelCase. Unknown fields are errors."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.domain.documents import Scopes
from app.domain.errors import InvalidInput
from app.domain.search import SearchOverrides, SearchQuery

MAX_BATCH = 32
MAX_QUERY_CHARACTERS = 100_000
MAX_COLLECTIONS = 1_000

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class NewCollection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A name is unique in its workspace, without regard to case."""

    name: Name
    description: Annotated[str, Meta(max_length=2_000)] = ""


class SearchBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A search. What is left out has the workspace's configured value; without a collection, all are searched."""

    query: Annotated[str, Meta(max_length=MAX_QUERY_CHARACTERS)]
    collection_ids: Annotated[list[UUID], Meta(max_length=MAX_COLLECTIONS)] = []
    collection_id: UUID | None = None
    top_k: Annotated[int, Meta(ge=1, le=200)] | UnsetType = UNSET
    min_score: Annotated[float, Meta(ge=-1, le=1)] | UnsetType | None = UNSET
    rerank: bool | UnsetType = UNSET
    dense: bool = True
    lexical: bool = True
    explain: bool = False
    timeout_ms: Annotated[int, Meta(ge=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None

    def to_query(self, workspace_id: UUID) -> SearchQuery:
        """Raises InvalidInput when both forms of naming collections are used."""
        if self.collection_id is not None and self.collection_ids:
            raise InvalidInput("/collectionId", "give either collectionId or collectionIds")
        own = (self.collection_id,) if self.collection_id is not None else tuple(self.collection_ids)
        return SearchQuery(
            text=self.query,
            workspace_id=workspace_id,
            collection_ids=own,
            scopes=Scopes(),
            overrides=SearchOverrides(
                top_k=self.top_k,
                min_score=self.min_score,
                rerank=self.rerank,
                dense=self.dense,
                lexical=self.lexical,
            ),
            max_tokens=self.max_tokens,
            timeout_ms=self.timeout_ms,
            explain=self.explain,
        )


class SearchBatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 32 searches, answered in their order."""

    searches: Annotated[list[SearchBody], Meta(min_length=1, max_length=MAX_BATCH)]
