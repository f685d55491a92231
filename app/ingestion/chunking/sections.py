"""A document's blocks under its headings."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from app.ingestion.parsers.blocks import Block, BlockKind, ParsedDocument, Range

TITLE_DEPTH = 0


class Section(Struct, frozen=True, kw_only=True):
    """What stands under one heading. `headings` are its own range and those above it that have no content.

    `path` and `depths` run from the outermost heading inwards; a title from metadata has depth 0.
    """

    path: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    headings: tuple[Range, ...] = ()
    blocks: tuple[Block, ...]


def headed_sections(document: ParsedDocument) -> list[Section]:
    """One section a heading that has content below it; headings at the end of the document are a section's content."""
    sections: list[Section] = []
    pending: list[Range] = []
    path, depths = _metadata_title(document)
    base = len(path)
    for heading, blocks in _by_heading(document.blocks):
        if heading is not None:
            keep = base + sum(depth < heading.depth for depth in _strictly_rising(depths[base:], heading.depth))
            path, depths = (*path[:keep], heading.title), (*depths[:keep], heading.depth)
            pending.append((heading.start, heading.end))
        if all(block.kind is BlockKind.RULE for block in blocks):
            pending += [(block.start, block.end) for block in blocks]
            continue
        sections.append(Section(path=path, depths=depths, headings=tuple(pending), blocks=tuple(blocks)))
        pending = []
    if pending:
        sections.append(_last_heading(path, depths, pending))
    return sections


def whole_document(document: ParsedDocument) -> list[Section]:
    """Everything as one section, headings being text like any other."""
    title = (document.title,) if document.title else ()
    return [Section(path=title, depths=(TITLE_DEPTH,) * len(title), blocks=document.blocks)]


def tables_apart(document: ParsedDocument) -> list[Section]:
    """Sections, with every table in one of its own."""
    apart: list[Section] = []
    for section in headed_sections(document):
        headings = section.headings
        for blocks in _table_runs(section.blocks):
            apart.append(Section(path=section.path, depths=section.depths, headings=headings, blocks=tuple(blocks)))
            headings = ()
    return apart


def _metadata_title(document: ParsedDocument) -> tuple[tuple[str, ...], tuple[int, ...]]:
    has_top = any(block.kind is BlockKind.HEADING and block.depth == 1 for block in document.blocks)
    return ((document.title,), (TITLE_DEPTH,)) if document.title and not has_top else ((), ())


def _strictly_rising(depths: tuple[int, ...], level: int) -> Iterator[int]:
    """The open headings that a heading of `level` does not close."""
    for depth in depths:
        if depth >= level:
            return
        yield depth


def _by_heading(blocks: Iterable[Block]) -> Iterator[tuple[Block | None, list[Block]]]:
    heading: Block | None = None
    below: list[Block] = []
    for block in blocks:
        if block.kind is not BlockKind.HEADING:
            below.append(block)
            continue
        if heading is not None or below:
            yield heading, below
        heading, below = block, []
    if heading is not None or below:
        yield heading, below


def _last_heading(path: tuple[str, ...], depths: tuple[int, ...], pending: list[Range]) -> Section:
    """With nothing below it, the last heading is text."""
    *above, (start, end) = pending
    block = Block(kind=BlockKind.PARAGRAPH, start=start, end=end)
    return Section(path=path, depths=depths, headings=tuple(above), blocks=(block,))


def _table_runs(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    run: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.TABLE or (run and run[-1].kind is BlockKind.TABLE):
            if run:
                yield run
            run = []
        run.append(block)
    if run:
        yield run
