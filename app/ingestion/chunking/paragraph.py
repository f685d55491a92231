"""Whole paragraphs up to the size, under their headings; a list's items are paragraphs."""

from collections.abc import Sequence

from app.ingestion.chunking.blocks import block_unit
from app.ingestion.chunking.sections import headed_sections
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    return [block_unit(source, block) for block in blocks]


PARAGRAPH = Strategy(name="paragraph", sections=headed_sections, units=_units)
