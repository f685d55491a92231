"""A window of `chunk_size` with `chunk_overlap`, cut at grapheme clusters and nowhere else."""

from collections.abc import Sequence

from app.ingestion.chunking.cuts import GRAPHEMES, pieces, prose
from app.ingestion.chunking.sections import whole_document
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block
from app.text.segmentation import grapheme_ends


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    return pieces(source, GRAPHEMES, prose(source, blocks[0].start, blocks[-1].end, levels=GRAPHEMES))


def _window(limits: Limits) -> Limits:
    return limits.shrunk(limits.target)


FIXED = Strategy(name="fixed", sections=whole_document, units=_units, limits=_window, overlap_cuts=(grapheme_ends,))
