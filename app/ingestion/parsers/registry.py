"""Which parser reads which media type. A new format is one more row here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.domain.errors import DocumentUnreadable, NoTextFound, UnsupportedFormat
from app.ingestion.parsers.blocks import ParsedDocument
from app.ingestion.parsers.markdown import parse_markdown
from app.ingestion.parsers.plain import parse_plain
from app.text.decoding import UndecodableError, decode

PARSERS: Mapping[str, Callable[[bytes], ParsedDocument]] = MappingProxyType(
    {
        "text/markdown": lambda data: parse_markdown(decode(data)),
        "text/plain": lambda data: parse_plain(decode(data)),
    }
)
SUFFIXES = (".md", ".markdown", ".mdown", ".txt", ".text", ".rst")
ALIASES: Mapping[str, str] = MappingProxyType({"text/x-markdown": "text/markdown", "text/x-rst": "text/plain"})


def parse(data: bytes, *, source_name: str, media_type: str) -> ParsedDocument:
    """Blocks of a file. Raises UnsupportedFormat, DocumentUnreadable (not text at all) or NoTextFound."""
    essence = media_type.partition(";")[0].strip().lower()
    parser = PARSERS.get(ALIASES.get(essence, essence))
    if parser is None:
        raise UnsupportedFormat(essence or "unknown", supported=supported_media_types())
    try:
        document = parser(data)
    except UndecodableError as error:
        raise DocumentUnreadable(f"{source_name} cannot be read as text: {error}") from error
    if not document.blocks:
        raise NoTextFound(f"{source_name} holds no text")
    return document


def supported_media_types() -> tuple[str, ...]:
    """What `parse` reads."""
    return tuple(PARSERS)


def supported_suffixes() -> tuple[str, ...]:
    """Name endings that a walk through a folder takes, lower case, with the dot."""
    return SUFFIXES
