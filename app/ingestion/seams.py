"""What the ingestion pipelines are given beside the ports: parser, chunker, lexical weights, knobs, observers."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from app.config.layers import ResolvedConfig
from app.domain.documents import Chunk, ChunkingOptions
from app.domain.vectors import SparseVector

CountTokens = Callable[[Sequence[str]], list[int]]
"""Tokens of each text as a passage, with prefix and special tokens."""


class Parse(Protocol):
    """Bytes to blocks. Runs in a worker thread; raises a DocumentError."""

    def __call__(self, data: bytes, *, source_name: str, media_type: str) -> Any: ...


class MakeChunks(Protocol):
    """Blocks to chunks, in order. Runs in a worker thread; raises a DocumentError."""

    def __call__(
        self, document: Any, options: ChunkingOptions, *, count_tokens: CountTokens | None
    ) -> Sequence[Chunk]: ...


class LexicalVector(Protocol):
    """BM25 weights of a chunk's lexical text; `average_length` is the generation's constant, in terms."""

    def __call__(
        self, source_name: str, section_path: Sequence[str], content: str, *, average_length: float
    ) -> SparseVector: ...


class Configuration(Protocol):
    """The layered knobs of a workspace."""

    async def resolve(self, workspace_id: UUID) -> ResolvedConfig: ...


class IngestReport(Struct, frozen=True, kw_only=True):
    """One finished ingest in numbers. `result` is indexed, failed or cancelled; stages are in seconds."""

    media_type: str
    result: str
    chunks: int = 0
    size_bytes: int = 0
    stage_s: dict[str, float] = {}


IngestObserver = Callable[[IngestReport], None]
