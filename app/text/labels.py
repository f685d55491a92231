"""The text that is embedded: a passage with the label of its section before it."""

from collections.abc import Sequence

from msgspec import Struct

from app.text.weights import weight

LABEL_WEIGHT = 180
SEPARATOR = " › "
ELLIPSIS = "…"


class EmbeddedText(Struct, frozen=True):
    """`text[content_start:]` is the content; what is before it is the label."""

    text: str
    content_start: int


def embedded_text(content: str, section_path: Sequence[str], *, enrichment: bool, chunk_size: int) -> EmbeddedText:
    """`[Section: A › B]`, a blank line, the content; exactly the content without a path or without enrichment.

    The one way to make this text: for new documents, edited chunks and re-embedding alike.
    """
    label = section_label(section_path, limit=label_limit(chunk_size)) if enrichment else ""
    return EmbeddedText(label + content, len(label))


def label_limit(chunk_size: int) -> int:
    """How much of the path a label may hold, in weighted characters: less than usual when chunks are small."""
    return min(LABEL_WEIGHT, chunk_size // 5)


def section_label(section_path: Sequence[str], *, limit: int = LABEL_WEIGHT) -> str:
    """As many of the deepest path elements as fit in `limit` weighted characters, at least (part of) the last."""
    if not section_path:
        return ""
    shown = shortened(section_path[-1], limit)
    for element in reversed(section_path[:-1]):
        longer = f"{element}{SEPARATOR}{shown}"
        if weight(longer) > limit:
            break
        shown = longer
    return f"[Section: {shown}]\n\n"


def shortened(title: str, limit: int) -> str:
    """The title, or its beginning up to a word's end and an ellipsis, within `limit` weighted characters."""
    if weight(title) <= limit:
        return title
    end = 0
    while end < len(title) and weight(title[: end + 1] + ELLIPSIS) < limit:
        end += 1
    kept = title[:end]
    if not title[end : end + 1].isspace() and " " in kept.strip():
        kept = kept.rstrip()[: kept.rstrip().rindex(" ")]
    return kept.rstrip() + ELLIPSIS
