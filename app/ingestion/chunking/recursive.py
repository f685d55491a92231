"""Separators from coarse to fine: blank lines, lines, sentences, words, characters. Headings are text."""

from collections.abc import Sequence

from app.ingestion.chunking.cuts import RECURSIVE as LEVELS
from app.ingestion.chunking.cuts import pieces, prose
from app.ingestion.chunking.sections import whole_document
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    return pieces(source, LEVELS, prose(source, blocks[0].start, blocks[-1].end, levels=LEVELS))


def _up_to_target(limits: Limits) -> Limits:
    return limits.shrunk(limits.target)


RECURSIVE = Strategy(name="recursive", sections=whole_document, units=_units, limits=_up_to_target)
