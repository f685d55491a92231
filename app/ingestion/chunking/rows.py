"""Tables by groups of rows with the header, never together with other text; the rest as by default."""

from collections.abc import Sequence

from app.ingestion.chunking.blocks import block_units
from app.ingestion.chunking.sections import tables_apart
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.tables import cut_table
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block, BlockKind


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    first = blocks[0]
    units = block_units(source, blocks)
    if first.kind is BlockKind.TABLE and first.rows and len(blocks) == 1:
        return cut_table(source, first, units[0], limits)
    return units


ROWS = Strategy(name="rows", sections=tables_apart, units=_units)
