"""The document as one chunk, refused when the model cannot hold it."""

import sys
from collections.abc import Sequence

from app.ingestion.chunking.sections import whole_document
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block


def _units(source: str, blocks: Sequence[Block], limits: Limits) -> list[Unit]:
    return [Unit(start=blocks[0].start, end=blocks[-1].end, container=blocks[0].start)]


def _unlimited(limits: Limits) -> Limits:
    return Limits(target=sys.maxsize, maximum=sys.maxsize, overlap=0)


WHOLE = Strategy(name="whole", sections=whole_document, units=_units, limits=_unlimited, splits=False)
