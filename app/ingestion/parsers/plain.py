"""Plain text: paragraphs between blank lines, lists by their bullets, `Field: value` lines."""

import re
from collections.abc import Iterator

from app.ingestion.parsers.blocks import Block, BlockKind, ParsedDocument
from app.ingestion.parsers.lines import Lines, prose_block
from app.text.normalise import normalise

_ITEM = re.compile(r"(?P<indent>\s*)(?:[-–—*+•·‣▪◦]|\(?(?:\d{1,3}|\w)[.)])\s+\S")
MIN_ITEMS = 2


def parse_plain(text: str) -> ParsedDocument:
    """Blocks of a text file; it has no headings."""
    lines = Lines(normalise(text))
    return ParsedDocument(text=lines.text, blocks=tuple(_blocks(lines)))


def _blocks(lines: Lines) -> Iterator[Block]:
    for first, end in lines.filled_runs(0, len(lines)):
        items = [number for number in range(first, end) if _ITEM.match(lines.content[number])]
        if len(items) < MIN_ITEMS:
            yield prose_block(lines, first, end)
            continue
        if items[0] > first:
            yield prose_block(lines, first, items[0])
        yield from _list(lines, items, end)


def _list(lines: Lines, items: list[int], end: int) -> Iterator[Block]:
    """An item goes on until the next one begins; more indentation than the item before is one level deeper."""
    list_id, indents = lines.range(items[0], items[0] + 1)[0], list[int]()
    for first, stop in zip(items, [*items[1:], end], strict=True):
        found = _ITEM.match(lines.content[first])
        indent = len(found["indent"]) if found else 0
        while indents and indents[-1] >= indent:
            indents.pop()
        indents.append(indent)
        start, finish = lines.range(first, stop)
        yield Block(kind=BlockKind.LIST_ITEM, start=start, end=finish, depth=len(indents), list_id=list_id)
