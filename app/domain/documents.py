"""Collections, documents, their revisions and chunks."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from msgspec import Struct

CHUNK_NAMESPACE = UUID("6f0a3f0e-6c61-5b2b-9d0a-6b726f73686b")
DEFAULT_WORKSPACE = UUID("00000000-0000-4000-8000-00006b726f73")


def chunk_id(document_id: UUID, revision_number: int, chunk_index: int) -> UUID:
    """Deterministic id of a chunk and of its point in the index: writing twice is writing once."""
    return uuid5(CHUNK_NAMESPACE, f"{document_id}/{revision_number}/{chunk_index}")


class RevisionState(StrEnum):
    """How far a revision has come."""

    QUEUED = "queued"
    PARSING = "parsing"
    CHUNKING = "chunking"
    CHUNKED = "chunked"
    EMBEDDING = "embedding"
    INDEXING = "indexing"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Scopes(Struct, frozen=True, kw_only=True):
    """Who a document is for. An empty list means everyone; these are claims of a trusted caller, never identity."""

    agent_ids: tuple[str, ...] = ()
    channel_ids: tuple[str, ...] = ()
    principal_ids: tuple[str, ...] = ()
    role_ids: tuple[str, ...] = ()


class Collection(Struct, frozen=True, kw_only=True):
    """A named set of documents; the name is unique in its workspace, without regard to case."""

    id: UUID
    workspace_id: UUID
    name: str
    description: str = ""
    created_at: datetime
    documents: int = 0
    chunks: int = 0
    bytes: int = 0


class StoredError(Struct, frozen=True):
    """Why something failed: a stable code and one sentence for a person."""

    code: str
    message: str


class PendingRevision(Struct, frozen=True):
    """A replacement that is on its way, or failed, while the current revision goes on serving."""

    revision: int
    status: str
    error: StoredError | None = None


class Document(Struct, frozen=True, kw_only=True):
    """A document as people see it. `status` is derived from its revisions (see spec/http)."""

    id: UUID
    workspace_id: UUID
    collection_id: UUID
    source_name: str
    description: str = ""
    attributes: dict[str, Any] = {}
    scopes: Scopes = Scopes()
    status: str
    revision: int
    size_bytes: int
    sha256: str
    media_type: str
    chunk_count: int = 0
    error: StoredError | None = None
    pending: PendingRevision | None = None
    created_at: datetime
    updated_at: datetime


class ChunkingOptions(Struct, frozen=True, kw_only=True):
    """Frozen on the revision at accept, so that a second run gives the same chunks.

    `size` and `overlap` are in weighted characters (spec/chunking). `max_tokens` is the embedder's input limit with
    prefix and special tokens, None where it has none. `source_title` may become the first path element.
    """

    strategy: str = "structure_aware"
    size: int = 900
    overlap: int = 120
    metadata_enrichment: bool = True
    max_tokens: int | None = None

    @property
    def hard_maximum(self) -> int:
        """No chunk weighs more than this, heading context and repeated headers included."""
        return -(-self.size * 14 // 9)


class Chunk(Struct, frozen=True, kw_only=True):
    """One passage, as the chunker makes it.

    `text` is what is embedded: optional `[Section: …]` label, blank line, content; `text[content_start:]` is the
    content. `spans` are half-open ranges of the normalised source that make up the content, in order; what is in the
    content but not in a span (repeated table header or fence, overlap) is added text. `heading_spans` are the ranges
    of headings that belong to this chunk. `weight` is the text's size in weighted characters.
    """

    index: int
    text: str
    content_start: int
    section_path: tuple[str, ...] = ()
    section_depths: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    heading_spans: tuple[tuple[int, int], ...] = ()
    page: int | None = None
    weight: int = 0
    strategy: str = "structure_aware"

    @property
    def content(self) -> str:
        return self.text[self.content_start :]

    @property
    def span(self) -> tuple[int, int] | None:
        """From the first to the last character of the source that this chunk covers."""
        if not self.spans:
            return self.heading_spans[0] if self.heading_spans else None
        return self.spans[0][0], self.spans[-1][1]


class ChunkRow(Struct, frozen=True, kw_only=True):
    """A chunk as stored: the truth from which the index can be rebuilt."""

    id: UUID
    document_id: UUID
    revision_id: UUID
    chunk: Chunk
    content_hash: str
    enabled: bool = True
    version: int = 1


class Revision(Struct, frozen=True, kw_only=True):
    """One accepted upload of a document."""

    id: UUID
    document_id: UUID
    workspace_id: UUID
    collection_id: UUID
    source_name: str
    number: int
    state: RevisionState
    blob_key: str
    sha256: str
    size_bytes: int
    media_type: str
    chunking: ChunkingOptions
    chunk_count: int = 0
    is_current: bool = False
    error: StoredError | None = None


class NewDocument(Struct, frozen=True, kw_only=True):
    """An upload whose bytes are in the blob store under `blob_key` (the revision's id), waiting to be accepted."""

    workspace_id: UUID
    collection_id: UUID
    revision_id: UUID
    source_name: str
    media_type: str
    sha256: str
    size_bytes: int
    chunking: ChunkingOptions
    description: str = ""
    attributes: dict[str, Any] = {}
    scopes: Scopes = Scopes()


class Accepted(Struct, frozen=True, kw_only=True):
    """`outcome` is `queued` or `unchanged` (same bytes and chunk configuration as the newest good revision)."""

    outcome: str
    document_id: UUID
    revision_id: UUID
    revision: int
    job_id: UUID | None = None


class Generation(Struct, frozen=True, kw_only=True):
    """One embedding of everything: a model and a lexical version, in one index.

    `average_length` is the BM25 constant of this generation, in terms per chunk.
    """

    id: UUID
    embedder: str
    model_key: str
    dimension: int
    lexical_version: int
    index_name: str
    state: str
    average_length: float
