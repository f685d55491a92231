"""Headings, tables and code of Markdown as blocks."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.ingestion.parsers.blocks import Block, BlockKind
from app.ingestion.parsers.lines import Lines

UNTITLED = "…"
HEADER_LINES = 2
_ANCHOR = re.compile(r"\s*\{\s*[#.:][^{}]*\}\s*$")
_TAG = re.compile(r"</?[a-z]|<!")  # `List<String>` is no tag
_NOT_QUOTE = re.compile(r"[^>\s]")


def heading_block(start: int, end: int, level: int, title: str) -> Block:
    """A heading of the document itself (not one inside a quotation or a list)."""
    return Block(kind=BlockKind.HEADING, start=start, end=end, depth=level, title=title)


def plain_title(inline_parser: MarkdownIt, content: str) -> str:
    """What a reader sees of a heading: no emphasis, link targets or `{#anchor}`, on one line."""
    inline = inline_parser.parseInline(_ANCHOR.sub("", content))
    text = "".join(_visible(token) for token in (inline[0].children or []))
    return " ".join(text.split()) or " ".join(content.split()) or UNTITLED


def _visible(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "html_inline":
        return "" if _TAG.match(token.content) else token.content
    return token.content if token.type in ("text", "code_inline", "text_special", "image") else ""


def table_block(lines: Lines, first: int, end: int) -> Block:
    """A table: two lines of header, then one line a row."""
    start, stop = lines.range(first, end)
    head = lines.range(first, first + HEADER_LINES)
    opening = "\n".join((_continued(lines.content[first]), lines.content[first + 1]))
    rows = lines.line_ranges(first + HEADER_LINES, end)
    return Block(kind=BlockKind.TABLE, start=start, end=stop, head=head, rows=rows, opening=opening)


def _continued(line: str) -> str:
    """The line without a list mark before its content: a repeated header begins no item."""
    mark = re.match(r"[>\s]*(?:(?:[-+*]|\d{1,9}[.)])\s+)+", line)
    return _NOT_QUOTE.sub(" ", mark[0]) + line[mark.end() :] if mark else line


def code_block(lines: Lines, token: Token, first: int, end: int) -> Block:
    """Code, fenced or indented. A closing fence that is missing is added only to pieces."""
    start, stop = lines.range(first, end)
    if token.type == "code_block":
        return Block(kind=BlockKind.CODE, start=start, end=stop)
    line = lines.content[first]
    margin = _NOT_QUOTE.sub(" ", line[: line.find(token.markup)])
    closed = end - first > 1 and _closes(lines.content[end - 1], token.markup)
    return Block(
        kind=BlockKind.CODE,
        start=start,
        end=stop,
        head=lines.range(first, first + 1),
        tail=lines.range(end - 1, end) if closed else None,
        opening=margin + line[len(margin) :],
        closing=margin + token.markup,
    )


def _closes(line: str, fence: str) -> bool:
    mark = line.lstrip("> \t")
    return len(mark) >= len(fence) and not mark.strip(fence[0])
