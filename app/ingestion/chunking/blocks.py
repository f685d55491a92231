"""Blocks as units, each with its own way of being cut."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from app.ingestion.chunking.code import code_unit
from app.ingestion.chunking.cuts import LINES, prose
from app.ingestion.chunking.tables import cut_table
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block, BlockKind


def block_units(source: str, blocks: Sequence[Block]) -> list[Unit]:
    """One unit a block, and one for each whole list."""
    units = []
    for (list_id, _), run in groupby(blocks, key=lambda block: (block.list_id, block.list_id is None and block.start)):
        members = tuple(run)
        units.append(block_unit(source, members[0]) if list_id is None else _list_unit(source, members))
    return units


def block_unit(source: str, block: Block) -> Unit:
    """A block by its kind."""
    if block.kind is BlockKind.TABLE and block.head is not None and block.rows:
        return _unit(block, partial(cut_table, source, block))
    if block.kind is BlockKind.CODE:
        return code_unit(source, block)
    if block.kind is BlockKind.KEY_VALUE:
        return _unit(block, partial(_cut_pairs, source, block))
    if block.kind is BlockKind.TABLE:
        return prose(source, block.start, block.end, overlaps=False, levels=LINES)
    return prose(source, block.start, block.end)


def _unit(block: Block, cut: "partial[list[Unit]]") -> Unit:
    return Unit(start=block.start, end=block.end, container=block.start, cut=cut)


def _cut_pairs(source: str, block: Block, unit: Unit, limits: Limits) -> list[Unit]:
    return [prose(source, start, end) for start, end in block.rows]


def _list_unit(source: str, members: tuple[Block, ...]) -> Unit:
    if len(members) == 1:
        return block_unit(source, members[0])
    last = block_unit(source, members[-1])
    return Unit(
        start=members[0].start,
        end=last.end,
        container=members[0].start,
        cut=partial(_cut_list, source, members),
        frame=last.frame,
        finishes=last.finishes,
    )


def _cut_list(source: str, members: tuple[Block, ...], unit: Unit, limits: Limits) -> list[Unit]:
    """Items of the outermost depth; a single item falls into its own text and the items in it."""
    items = list(_items(members))
    if len(items) == 1:
        items = [members[:1], *_items(members[1:])]
    return [_list_unit(source, item) for item in items]


def _items(members: tuple[Block, ...]) -> Iterator[tuple[Block, ...]]:
    """Runs that begin with an item of the least depth there is; blocks before the first one by one."""
    outermost = min((block.depth for block in members if block.kind is BlockKind.LIST_ITEM), default=None)
    item: list[Block] = []
    for block in members:
        if item and (outermost is None or _begins(block, outermost) or not _begins(item[0], outermost)):
            yield tuple(item)
            item = []
        item.append(block)
    if item:
        yield tuple(item)


def _begins(block: Block, depth: int) -> bool:
    return block.kind is BlockKind.LIST_ITEM and block.depth == depth
