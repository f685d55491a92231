"""What every parser gives: a normalised text and the flat sequence of its blocks.

All offsets are code points of `ParsedDocument.text`. Formats without a text of their own (office files, pages) write
one while they parse, so that chunking sees no difference.
"""

from enum import StrEnum

from msgspec import Struct

Range = tuple[int, int]
"""Half-open."""


class BlockKind(StrEnum):
    """What a block is; `rule` has nothing to read: a line that separates, a comment."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"
    KEY_VALUE = "key_value"
    RULE = "rule"


class Block(Struct, frozen=True, kw_only=True):
    """Whole lines of the text, in order and without overlap; only white space lies between two blocks.

    `depth` is a heading's level, or how deep in a list the block stands (0: in none). `list_id` is the same for all
    blocks of one outermost list, also for a table or code in an item. `title` is a heading without its markup.
    `rows` are the body rows of a table or the lines of a key-value block.

    `head` is what a split table or code block repeats (header and separator, or the opening fence), `tail` a closing
    fence; `opening` and `closing` are their texts for a piece that does not hold them. An unclosed fence has an empty
    `tail`, an indented code block neither.
    """

    kind: BlockKind
    start: int
    end: int
    depth: int = 0
    list_id: int | None = None
    title: str = ""
    rows: tuple[Range, ...] = ()
    head: Range | None = None
    tail: Range | None = None
    opening: str = ""
    closing: str = ""
    page: int | None = None


class ParsedDocument(Struct, frozen=True, kw_only=True):
    """`title` is one that the file's metadata give (not its first heading)."""

    text: str
    blocks: tuple[Block, ...]
    title: str | None = None
