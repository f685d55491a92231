"""Short ways from a text to its chunks."""

from app.domain.documents import Chunk, ChunkingOptions
from app.ingestion.chunking import chunk
from app.ingestion.parsers import ParsedDocument, parse


def markdown(text: str) -> ParsedDocument:
    return parse(text.encode(), source_name="a.md", media_type="text/markdown")


def chunks_of(text: str, **options: object) -> list[Chunk]:
    """Chunks of a Markdown text; without labels unless asked for."""
    given = ChunkingOptions(**{"metadata_enrichment": False, "overlap": 0} | options)
    return chunk(markdown(text), given, count_tokens=None)


def contents(text: str, **options: object) -> list[str]:
    return [one.content for one in chunks_of(text, **options)]


def sentences(count: int, *, name: str = "Предложение") -> str:
    """Numbered sentences of about 40 weighted characters."""
    return " ".join(f"{name} {number:03} говорит об одном деле." for number in range(count))
