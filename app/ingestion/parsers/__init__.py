"""One parser a format; each gives blocks."""

from app.ingestion.parsers.blocks import Block, BlockKind, ParsedDocument
from app.ingestion.parsers.registry import parse, supported_media_types, supported_suffixes

__all__ = ["Block", "BlockKind", "ParsedDocument", "parse", "supported_media_types", "supported_suffixes"]
