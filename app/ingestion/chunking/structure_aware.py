"""The default: blocks under their headings, cut only where they do not fit."""

from collections.abc import Sequence

from app.ingestion.chunking.blocks import block_units
from app.ingestion.chunking.sections import headed_sections
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    return block_units(source, blocks)


STRUCTURE_AWARE = Strategy(name="structure_aware", sections=headed_sections, units=_units)
