"""What a strategy decides; packing, labels, spans and token limits are the same for all."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from app.ingestion.chunking.packing import WHOLE_SENTENCES, Ends
from app.ingestion.chunking.sections import Section
from app.ingestion.chunking.units import Limits, Unit
from app.ingestion.parsers.blocks import Block, ParsedDocument


def as_given(limits: Limits) -> Limits:
    """The limits as the options give them."""
    return limits


class Strategy(Struct, frozen=True, kw_only=True):
    """`sections` never share a chunk; `units` makes of a section's blocks what is packed, given source and limits.

    `splits` is False for the strategy that may not cut a text that the model cannot hold, but refuses it.
    """

    name: str
    sections: Callable[[ParsedDocument], list[Section]]
    units: Callable[[str, Sequence[Block], Limits], list[Unit]]
    limits: Callable[[Limits], Limits] = as_given
    overlap_cuts: tuple[Ends, ...] = WHOLE_SENTENCES
    splits: bool = True
