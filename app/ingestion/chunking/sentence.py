"""Whole sentences up to the size, under their headings, with overlap in whole sentences."""

from collections.abc import Sequence

from app.ingestion.chunking.blocks import block_unit
from app.ingestion.chunking.cuts import SENTENCES, pieces, prose
from app.ingestion.chunking.sections import headed_sections
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block, BlockKind
from app.text.segmentation import sentence_ends


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    """Prose blocks in a row are one container, so that overlap reaches over their borders."""
    units: list[Unit] = []
    container: int | None = None
    for block in blocks:
        if block.kind in (BlockKind.TABLE, BlockKind.CODE):
            units.append(block_unit(source, block))
            container = None
            continue
        container = block.start if container is None else container
        units += pieces(source, SENTENCES, prose(source, block.start, block.end, container=container))
    return units


SENTENCE = Strategy(name="sentence", sections=headed_sections, units=_units, overlap_cuts=(sentence_ends,))
