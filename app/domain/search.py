"""A search from request to hits."""

from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType, field

from app.domain.documents import Scopes


class SearchOverrides(Struct, frozen=True, kw_only=True):
    """A request's own knobs, each stronger than every layer of configuration; UNSET leaves the layers' value."""

    top_k: int | UnsetType = UNSET
    min_score: float | UnsetType | None = UNSET
    rerank: bool | UnsetType = UNSET
    dense: bool = True
    lexical: bool = True


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What somebody wants to know, where, and in how long."""

    text: str
    workspace_id: UUID
    collection_ids: tuple[UUID, ...] = ()
    scopes: Scopes = Scopes()
    overrides: SearchOverrides = SearchOverrides()
    max_tokens: int | None = None
    timeout_ms: int | None = None
    explain: bool = False
    door: str = "http"


class SearchScope(Struct, frozen=True, kw_only=True):
    """Where a search may look: the one tenant condition of every index query and SQL statement."""

    workspace_id: UUID
    collection_ids: tuple[UUID, ...] = ()


class SearchSnapshot(Struct, frozen=True, kw_only=True):
    """What was true when the search began: the epoch decides which revisions are visible."""

    epoch: int
    generation_id: UUID
    model_key: str
    index_name: str
    lexical_version: int
    has_documents: bool


class VisibleChunk(Struct, frozen=True, kw_only=True):
    """A candidate that the caller may see."""

    chunk_id: UUID
    document_id: UUID
    chunk_index: int


class Passage(Struct, frozen=True, kw_only=True):
    """A stored chunk with what a hit shows of it."""

    chunk_id: UUID
    document_id: UUID
    collection_id: UUID
    source_name: str
    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    page: int | None
    span: tuple[int, int] | None


class Scores(Struct, frozen=True, kw_only=True, rename="camel"):
    """Every score that a hit earned; None where it was in no such list. They are of different scales."""

    cosine: float | None = None
    lexical: float | None = None
    fused: float | None = None
    rerank: float | None = None


class Ranks(Struct, frozen=True, kw_only=True, rename="camel"):
    """The hit's place in each list, from 1."""

    dense: int | None = None
    lexical: int | None = None
    fused: int | None = None


class Hit(Struct, frozen=True, kw_only=True, rename="camel"):
    """One passage of the answer. `relevance` is calibrated 0..1 (None where no calibration is known)."""

    chunk_id: UUID
    document_id: UUID
    collection_id: UUID
    source_name: str
    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    page: int | None
    span: tuple[int, int] | None
    relevance: float | None
    relevance_source: str | None
    reranked: bool
    scores: Scores
    ranks: Ranks


class Degradation(Struct, frozen=True, kw_only=True, rename="camel"):
    """A helper that was missing: `cause` is of the closed set of spec/metrics, `after_ms` what waiting cost."""

    stage: str
    cause: str
    after_ms: float


class RerankerInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which reranker answered, and in which dialect."""

    dialect: str
    model: str


class KnobValue(Struct, frozen=True):
    """A knob's effective value and the layer it came from."""

    value: Any
    layer: str


class SearchResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """The answer. `outcome` is one of the closed set of spec/retrieval; `notes` tells what is odd but not wrong."""

    outcome: str
    hits: tuple[Hit, ...] = ()
    degraded: tuple[Degradation, ...] = ()
    notes: tuple[str, ...] = ()
    reranker: RerankerInfo | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)
    config: dict[str, KnobValue] | UnsetType = UNSET
    before_rerank: tuple[Hit, ...] | UnsetType = UNSET
