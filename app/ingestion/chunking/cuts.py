"""Prose into ever finer units: sentences, lines, words, grapheme clusters, code points."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from app.ingestion.chunking.units import NO_FRAME, Frame, Limits, Unit
from app.text.segmentation import (
    code_point_ends,
    grapheme_ends,
    line_ends,
    paragraph_ends,
    raw_sentence_ends,
    sentence_ends,
    spaced_word_ends,
    word_ends,
)

Levels = tuple[Callable[[str], Sequence[int]], ...]
WORDS: Levels = (spaced_word_ends, word_ends, grapheme_ends, code_point_ends)
SENTENCES: Levels = (sentence_ends, raw_sentence_ends, *WORDS)
LINES: Levels = (line_ends, *WORDS)
RECURSIVE: Levels = (paragraph_ends, line_ends, *SENTENCES)
GRAPHEMES: Levels = (grapheme_ends, code_point_ends)


def prose(
    source: str,
    start: int,
    end: int,
    *,
    container: int | None = None,
    overlaps: bool = True,
    levels: Levels = SENTENCES,
    frame: Frame = NO_FRAME,
    begins: bool = True,
    finishes: bool = True,
) -> Unit:
    """A unit that falls into pieces by the first of `levels` that cuts it at all."""
    return Unit(
        start=start,
        end=end,
        container=start if container is None else container,
        cut=partial(_cut, source, levels),
        frame=frame,
        begins=begins,
        finishes=finishes,
        overlaps=overlaps,
    )


def pieces(source: str, levels: Levels, unit: Unit) -> list[Unit]:
    """The unit's pieces, each with the levels that are left; an indivisible unit gives itself, not to be cut again."""
    for place, ends in enumerate(levels):
        ranges = _trimmed(source, unit.start, ends(source[unit.start : unit.end]))
        if len(ranges) > 1:
            rest = levels[place + 1 :]
            return [
                replace(
                    unit,
                    start=unit.start if number == 0 else start,
                    end=end,
                    cut=partial(_cut, source, rest) if rest else None,
                    begins=unit.begins and number == 0,
                    finishes=unit.finishes and number == len(ranges) - 1,
                )
                for number, (start, end) in enumerate(ranges)
            ]
    return [replace(unit, cut=None)]


def _cut(source: str, levels: Levels, unit: Unit, limits: Limits) -> list[Unit]:
    return pieces(source, levels, unit)


def _trimmed(source: str, base: int, ends: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges without the white space around them; pieces of white space alone are left out."""
    ranges, start = [], base
    for end in (base + end for end in ends):
        text = source[start:end]
        if text and not text.isspace():
            ranges.append((start + len(text) - len(text.lstrip()), start + len(text.rstrip())))
        start = end
    return ranges
