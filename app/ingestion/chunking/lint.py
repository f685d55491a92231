"""Checks chunks against the source by their spans alone; knows nothing of how they were made."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from app.domain.documents import Chunk, ChunkingOptions
from app.ingestion.parsers.blocks import Block, BlockKind, ParsedDocument, Range
from app.text.weights import weight

UNDER_HEADINGS = frozenset({"structure_aware", "sentence", "paragraph", "rows"})
FRAMING = UNDER_HEADINGS
UNLIMITED = frozenset({"whole"})


class Finding(Struct, frozen=True):
    """What is wrong with a chunk; None for the document as a whole."""

    chunk: int | None
    message: str


def lint(document: ParsedDocument, chunks: Sequence[Chunk], options: ChunkingOptions) -> list[Finding]:
    """Everything that breaks a promise; empty when all is well."""
    findings = list(_coverage(document.text, chunks))
    for chunk in chunks:
        messages = [*_own_text(document.text, chunk), *_size(chunk, options)]
        if options.strategy in UNDER_HEADINGS:
            messages += _section(document, chunk)
        if options.strategy in FRAMING:
            messages += _frames(document, chunk, options)
        findings += [Finding(chunk.index, message) for message in messages]
    return findings


def _coverage(source: str, chunks: Sequence[Chunk]) -> Iterator[Finding]:
    """Every character that is not white space is in exactly one span or heading span, in order."""
    done = 0
    for place, chunk in enumerate(chunks):
        if chunk.index != place:
            yield Finding(chunk.index, f"is number {place} in the document")
        for start, end in (*chunk.heading_spans, *chunk.spans):
            if not done <= start < end <= len(source):
                yield Finding(chunk.index, f"range {start}–{end} is empty, outside the text or not after {done}")
            elif source[done:start].strip():
                yield Finding(chunk.index, f"text before it is in no chunk: {source[done:start].strip()[:40]!r}")
            done = max(done, end)
    if source[done:].strip():
        yield Finding(None, f"text at the end is in no chunk: {source[done:].strip()[:40]!r}")


def _own_text(source: str, chunk: Chunk) -> Iterator[str]:
    """The content shows its spans exactly and in order; nothing but white space and the label is at its edges."""
    content, place = chunk.content, 0
    if not chunk.spans:
        yield "has no text of its own"
    if content != content.strip() or not content:
        yield "content is empty or has white space at its edges"
    if chunk.content_start and not (chunk.text.startswith("[Section: ") and chunk.text[: chunk.content_start][-2:]):
        yield "begins with something that is no section label"
    for start, end in chunk.spans:
        found = content.find(source[start:end], place)
        if found < 0:
            yield f"content does not show {start}–{end} of the source"
        place = max(place, found + end - start)


def _size(chunk: Chunk, options: ChunkingOptions) -> Iterator[str]:
    actual = weight(chunk.text)
    if actual != chunk.weight:
        yield f"says it weighs {chunk.weight}, but it weighs {actual}"
    if actual > options.hard_maximum and options.strategy not in UNLIMITED:
        yield f"weighs {actual}, at most {options.hard_maximum} are allowed"


def _section(document: ParsedDocument, chunk: Chunk) -> Iterator[str]:
    """No heading lies inside it, and its path is that of the headings above it."""
    if chunk.span is None:
        return
    start, end = chunk.span
    stack: list[Block] = []
    for block in document.blocks:
        if block.kind is not BlockKind.HEADING:
            continue
        if start < block.start < end:
            yield f"crosses the heading {block.title!r}"
        if block.start <= start:
            stack = [*(one for one in stack if one.depth < block.depth), block]
    path = tuple(block.title for block in stack)
    if chunk.section_path[len(chunk.section_path) - len(path) :] != path:
        yield f"has the path {chunk.section_path}, but stands under {path}"


def _frames(document: ParsedDocument, chunk: Chunk, options: ChunkingOptions) -> Iterator[str]:
    """Pieces of tables have the header, pieces of code are between fences."""
    for block in document.blocks:
        if block.head is None or chunk.span is None or chunk.span[1] <= block.start or block.end <= chunk.span[0]:
            continue
        if block.kind is BlockKind.TABLE:
            yield from _table(document.text, block, chunk, options)
        elif not _too_large(block, chunk, options):
            yield from _code(block, chunk)


def _table(source: str, block: Block, chunk: Chunk, options: ChunkingOptions) -> Iterator[str]:
    shown = [row for row in block.rows if _meets(row, chunk)]
    if not shown or block.head is None or _meets(block.head, chunk) or _too_large(block, chunk, options):
        return
    beside_header = weight(chunk.content) + weight(block.opening) + 1 <= _room(chunk, options)
    if beside_header and not chunk.content.startswith(block.opening.strip()):
        yield f"has rows of the table at {block.start} without its header"
    for start, end in shown:
        whole = weight(block.opening) + 1 + weight(source[start:end]) <= _room(chunk, options)
        if whole and not any(one <= start and end <= other for one, other in chunk.spans):
            yield f"has only a part of the row at {start}"


def _code(block: Block, chunk: Chunk) -> Iterator[str]:
    lines = chunk.content.split("\n")
    has_head = block.head is not None and _meets(block.head, chunk)
    has_tail = block.tail is not None and _meets(block.tail, chunk)
    if not has_head and lines[0].strip() != block.opening.strip():
        yield f"has code of the block at {block.start} without its opening fence"
    closed_by_what_follows = block.tail is None and chunk.span is not None and chunk.span[1] > block.end
    if not has_tail and not closed_by_what_follows and lines[-1].strip() != block.closing.strip():
        yield f"has code of the block at {block.start} without a closing fence"


def _meets(part: Range, chunk: Chunk) -> bool:
    return any(start < part[1] and part[0] < end for start, end in chunk.spans)


def _too_large(block: Block, chunk: Chunk, options: ChunkingOptions) -> bool:
    """Headers and fences that take more than half of a chunk are kept once."""
    frame = weight(block.opening) + weight(block.closing) + 2
    return 2 * frame > _room(chunk, options)


def _room(chunk: Chunk, options: ChunkingOptions) -> int:
    return options.hard_maximum - weight(chunk.text[: chunk.content_start])
