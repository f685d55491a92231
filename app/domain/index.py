"""What the vector index is asked and what it answers, the same for the embedded engine and a server."""

from uuid import UUID

from msgspec import Struct

from app.domain.vectors import FloatArray, SparseVector


class IndexFilter(Struct, frozen=True, kw_only=True):
    """`workspace_id` is always required: one place that no query can forget. Empty tuples do not restrict."""

    workspace_id: UUID
    collection_ids: tuple[UUID, ...] = ()
    document_ids: tuple[UUID, ...] = ()
    revision_ids: tuple[UUID, ...] = ()


class PointPayload(Struct, frozen=True, kw_only=True, rename="camel"):
    """Payload of a point; the names are those that clients of this architecture expect (spec/chunking)."""

    document_id: UUID
    collection_id: UUID
    workspace_id: UUID
    revision_id: UUID
    revision: int
    source_name: str
    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    chunk_strategy: str
    page: int | None
    content_hash: str
    lexical_version: int


class IndexPoint(Struct, frozen=True, kw_only=True):
    """A point is named by its chunk's id, so writing it twice is writing it once."""

    chunk_id: UUID
    dense: FloatArray
    lexical: SparseVector
    payload: PointPayload


class IndexQuery(Struct, frozen=True, kw_only=True):
    """One batch: the dense list, the lexical list, and the lexical list's cosines. A missing vector skips its list.

    `limit` is the depth of each list. The IDF corpus of the lexical list is always the workspace.
    """

    filter: IndexFilter
    limit: int
    dense: FloatArray | None = None
    lexical: SparseVector | None = None


class DenseHit(Struct, frozen=True):
    """A point and its cosine."""

    chunk_id: UUID
    cosine: float


class LexicalHit(Struct, frozen=True, kw_only=True):
    """A point, its BM25 score, how many different terms of the query it holds, and its cosine if a vector was given."""

    chunk_id: UUID
    score: float
    matched_terms: int
    cosine: float | None = None


class IndexAnswer(Struct, frozen=True, kw_only=True):
    """Both lists, best first, ties by chunk id. A list that was not asked for is empty."""

    dense: tuple[DenseHit, ...] = ()
    lexical: tuple[LexicalHit, ...] = ()


class IndexStatus(Struct, frozen=True, kw_only=True):
    """How much the index holds."""

    engine: str
    points: int
    bytes_on_disk: int | None = None
