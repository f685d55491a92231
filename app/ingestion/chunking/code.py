"""Code by stanzas and lines, every piece between fences."""

import re
from functools import partial

from app.ingestion.chunking.cuts import LINES, WORDS, pieces, prose
from app.ingestion.chunking.units import NO_FRAME, Frame, Limits, Unit
from app.ingestion.parsers.blocks import Block, Range

INDENT = "    "
_STANZAS = re.compile(r"(?:[^\n]+\n?)+")
_LINES = re.compile(r"[^\n]*\S[^\n]*")


def code_unit(source: str, block: Block) -> Unit:
    """The whole block; a closing fence that the source lacks is added."""
    unclosed = block.head is not None and block.tail is None
    return Unit(
        start=block.start,
        end=block.end,
        container=block.start,
        cut=partial(cut_code, source, block),
        frame=_frame(block) if unclosed else NO_FRAME,
        finishes=not unclosed,
    )


def cut_code(source: str, block: Block, unit: Unit, limits: Limits) -> list[Unit]:
    """Units between blank lines, each to be closed and opened again with the block's own fence.

    Fences that take more than half a chunk are kept once, as plain text, and the code becomes an indented block.
    """
    start, end = _body(block)
    if not source[start:end].strip():
        return [prose(source, block.start, block.end, overlaps=False)]
    if block.head is None:
        return _stanzas(source, block, NO_FRAME)
    frame = _frame(block)
    if 2 * (frame.opening_weight + frame.closing_weight) <= limits.maximum:
        return _stanzas(source, block, frame)
    return _indented(source, block)


def _frame(block: Block) -> Frame:
    return Frame.of(block.opening + "\n", "\n" + block.closing)


def _body(block: Block) -> Range:
    start = min(block.head[1] + 1, block.end) if block.head else block.start
    return start, max(start, block.tail[0] - 1) if block.tail else block.end


def _stanzas(source: str, block: Block, frame: Frame) -> list[Unit]:
    start, end = _body(block)
    found = [match.span() for match in _STANZAS.finditer(source, start, end) if match[0].strip()]
    return _framed(source, block, frame, found, partial(_cut_stanza, source, block, frame))


def _cut_stanza(source: str, block: Block, frame: Frame, unit: Unit, limits: Limits) -> list[Unit]:
    """Lines; the block's own fences stay with the first and the last line."""
    start, end = _body(block)
    inside = max(unit.start, start), min(unit.end, end)
    found = [match.span() for match in _LINES.finditer(source, *inside)]
    if len(found) <= 1:
        return pieces(source, LINES, unit)
    return _framed(source, block, frame, found, partial(_cut_line, source))


def _cut_line(source: str, unit: Unit, limits: Limits) -> list[Unit]:
    return pieces(source, LINES, unit)


def _framed(source: str, block: Block, frame: Frame, found: list[Range], cut: "partial[list[Unit]]") -> list[Unit]:
    """Ranges as units; those at the block's ends take its fences in."""
    body_start, body_end = _body(block)
    units = []
    for start, end in found:
        begins = not source[body_start:start].strip()
        ends = not source[end:body_end].strip()
        units.append(
            Unit(
                start=block.start if begins else start,
                end=block.end if ends else start + len(source[start:end].rstrip()),
                container=block.start,
                cut=cut,
                frame=frame,
                begins=begins,
                finishes=ends and block.tail is not None,
            )
        )
    return units


def _indented(source: str, block: Block) -> list[Unit]:
    body_start, body_end = _body(block)
    units = [prose(source, *block.head, overlaps=False)] if block.head else []
    for match in _LINES.finditer(source, body_start, body_end):
        start, end = match.span()
        units.append(Unit(start=start, end=end, container=block.start, margin=INDENT, cut=partial(_cut_words, source)))
    return [*units, prose(source, *block.tail, overlaps=False)] if block.tail else units


def _cut_words(source: str, unit: Unit, limits: Limits) -> list[Unit]:
    return pieces(source, WORDS, unit)
