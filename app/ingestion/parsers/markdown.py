"""Markdown by markdown-it-py's block rules; everything between the blocks it names is kept too.

Only lines are asked of the library: inline markup stays in the text as written. What its block rules leave without a
token (an empty list item, text nested deeper than `MAX_NESTING`) becomes a block by the gap rule, so that no line is
ever lost.
"""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin
from msgspec.structs import replace

from app.ingestion.parsers.blocks import Block, BlockKind, ParsedDocument
from app.ingestion.parsers.lines import Lines, prose_block
from app.ingestion.parsers.markdown_blocks import code_block, heading_block, plain_title, table_block
from app.text.normalise import normalise

MAX_NESTING = 100
MAX_TITLE = 300
"""Characters. A longer "heading" is a paragraph whose writer forgot the blank line before a `---`: it is text."""

_COMMENTS = re.compile(r"\s*(?:<!--(?:(?!-->).)*-->\s*)+", re.S)
# A line of nothing but container marks takes the library quadratic time; such a line is only a line of text here.
_MARKS_ONLY = re.compile(r"^(?:(?:[-+*>]|\d{1,9}[.)])[ \t]+){100,}.*$", re.M)
_TITLE = re.compile(r"^title:[ \t]*(?P<quote>[\"']?)(?P<title>.+?)(?P=quote)[ \t]*$", re.M)
LEAVES = frozenset(
    {"front_matter", "heading_open", "paragraph_open", "fence", "code_block", "html_block", "hr", "table_open"}
)


def parse_markdown(text: str) -> ParsedDocument:
    """Blocks of a Markdown file; the title is the one of its front matter."""
    lines = Lines(normalise(text))
    tokens = _block_parser().parse(_MARKS_ONLY.sub("x", lines.text))
    return ParsedDocument(text=lines.text, blocks=tuple(_Blocks(lines).read(tokens)), title=_title(tokens))


def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table").use(front_matter_plugin)
    return parser.disable(["inline", "text_join", "reference"], ignoreInvalid=True)


def _title(tokens: Sequence[Token]) -> str | None:
    if not tokens or tokens[0].type != "front_matter":
        return None
    found = _TITLE.search(tokens[0].content)
    return found["title"].strip() or None if found else None


class _Place:
    """Where in lists a line stands."""

    __slots__ = ("depth", "fresh", "list_id")

    def __init__(self, list_id: int | None, depth: int, *, fresh: bool) -> None:
        self.list_id, self.depth, self.fresh = list_id, depth, fresh


class _Blocks:
    """One walk over the tokens, with the list items that are open."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._titles = MarkdownIt("commonmark")
        self._items: list[_Place] = []
        self._list_of_line: dict[int, tuple[int | None, int]] = {}

    def read(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """Blocks in order; lines that no leaf covers become blocks where they stand."""
        self._mark_lists(tokens)
        done = 0
        for place, token in enumerate(tokens):
            self._follow(token)
            if token.map is None or token.type not in LEAVES:
                continue
            first, end = max(token.map[0], done), token.map[1]
            if first >= end:
                continue
            yield from self._gap(done, first)
            if first == token.map[0]:
                yield self._leaf(tokens, place, first, end)
            else:
                yield from self._gap(first, end)
            done = end
        yield from self._gap(done, len(self._lines))

    def _mark_lists(self, tokens: Sequence[Token]) -> None:
        """For lines without a leaf: the innermost list item around each."""
        depth, list_id = 0, None
        for token in tokens:
            if token.type == "list_item_open" and token.map is not None:
                depth += 1
                list_id = token.map[0] if depth == 1 and list_id is None else list_id
                for number in range(*token.map):
                    self._list_of_line[number] = (list_id, depth)
            elif token.type == "list_item_close":
                depth -= 1
            elif token.type in ("bullet_list_close", "ordered_list_close") and depth == 0:
                list_id = None

    def _follow(self, token: Token) -> None:
        if token.type == "list_item_open":
            depth = len(self._items) + 1
            list_id = self._list_of_line.get(token.map[0], (None, 0))[0] if token.map else None
            self._items.append(_Place(list_id, depth, fresh=True))
        elif token.type == "list_item_close":
            self._items.pop()

    def _leaf(self, tokens: Sequence[Token], place: int, first: int, end: int) -> Block:
        block = self._by_type(tokens, place, first, end)
        if not self._items:
            return block
        item = self._items[-1]
        keeps_kind = block.kind in (BlockKind.TABLE, BlockKind.CODE) or not item.fresh
        for one in self._items:
            one.fresh = False
        return _with_list(block, block.kind if keeps_kind else BlockKind.LIST_ITEM, item.list_id, item.depth)

    def _by_type(self, tokens: Sequence[Token], place: int, first: int, end: int) -> Block:
        token, lines = tokens[place], self._lines
        start, stop = lines.range(first, end)
        if token.type == "heading_open" and token.level == 0 and len(tokens[place + 1].content) <= MAX_TITLE:
            return heading_block(start, stop, int(token.tag[1:]), plain_title(self._titles, tokens[place + 1].content))
        if token.type == "table_open":
            return table_block(lines, first, end)
        if token.type in ("fence", "code_block"):
            return code_block(lines, token, first, end)
        if token.type == "hr" or (token.type == "html_block" and _COMMENTS.fullmatch(lines.text, start, stop)):
            return Block(kind=BlockKind.RULE, start=start, end=stop)
        if token.type == "front_matter":
            rows = lines.line_ranges(first, end)
            return Block(kind=BlockKind.KEY_VALUE, start=start, end=stop, rows=rows)
        return prose_block(lines, first, end)

    def _gap(self, first: int, end: int) -> Iterator[Block]:
        for start, stop in self._lines.filled_runs(first, end):
            list_id, depth = self._list_of_line.get(start, (None, 0))
            block = prose_block(self._lines, start, stop)
            kind = BlockKind.LIST_ITEM if depth else block.kind
            yield _with_list(block, kind, list_id, depth) if depth else block


def _with_list(block: Block, kind: BlockKind, list_id: int | None, depth: int) -> Block:
    rows = block.rows if kind is block.kind else ()
    return replace(block, kind=kind, depth=depth, list_id=list_id, rows=rows)
