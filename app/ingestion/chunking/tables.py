"""Tables by rows, each fragment with the header."""

from app.ingestion.chunking.cuts import SENTENCES, prose
from app.ingestion.chunking.units import NO_FRAME, Frame, Limits, Unit
from app.ingestion.parsers.blocks import Block
from app.text.segmentation import cell_ends
from app.text.weights import weight

ROW_LEVELS = (cell_ends, *SENTENCES)


def cut_table(source: str, block: Block, unit: Unit, limits: Limits) -> list[Unit]:
    """A unit a row. The first holds the header, the others repeat it when a chunk begins with them.

    A header that takes more than half a chunk is kept once, as plain text. A row that fits alone but not beside the
    header stands without it; a row that fits nowhere is cut between cells, then as prose.
    """
    if block.head is None:
        return [unit]
    frame = Frame.of(block.opening + "\n", "")
    head_start, head_end = block.head
    first_end = block.rows[0][1]
    repeats = 2 * frame.opening_weight <= limits.maximum
    units = [_row(source, block, row, frame if repeats else NO_FRAME, limits) for row in block.rows]
    if repeats and weight(source[head_start:first_end]) <= limits.maximum:
        first = Unit(start=head_start, end=first_end, container=block.start, frame=frame, cut=units[0].cut)
        return [first, *units[1:]]
    return [prose(source, head_start, head_end, container=block.start, overlaps=False), *units]


def _row(source: str, block: Block, row: tuple[int, int], frame: Frame, limits: Limits) -> Unit:
    size = weight(source[row[0] : row[1]])
    if size <= limits.maximum < size + frame.opening_weight:
        frame = NO_FRAME
    return prose(
        source,
        row[0],
        row[1],
        container=block.start,
        overlaps=False,
        levels=ROW_LEVELS,
        frame=frame,
        begins=False,
    )
