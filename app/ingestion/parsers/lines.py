"""A text as numbered lines, and what a run of lines looks like."""

import re
from collections.abc import Iterator

from app.ingestion.parsers.blocks import Block, BlockKind, Range

_KEY_VALUE = re.compile(r"(?![-+*#>|] |\d+[.)] |https?:)[^\s:|][^:\n|]{0,60}:(?:[*_`]{0,3})\s+\S")
MIN_PAIRS = 2


class Lines:
    """Lines of a normalised text, split at LF only (as the Markdown parser counts them)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.content = text.split("\n")
        self._starts = [0]
        for line in self.content:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def __len__(self) -> int:
        return len(self.content)

    def range(self, first: int, end: int) -> Range:
        """Characters of lines [first, end), without blank lines at the end."""
        while end > first + 1 and not self.content[end - 1].strip():
            end -= 1
        return self._starts[first], self._starts[end] - 1

    def line_ranges(self, first: int, end: int) -> tuple[Range, ...]:
        """One range for each line that is not blank."""
        return tuple(self.range(number, number + 1) for number in range(first, end) if self.content[number].strip())

    def filled_runs(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Runs of consecutive lines that are not blank."""
        start = first
        for number in range(first, end + 1):
            if number == end or not self.content[number].strip():
                if number > start:
                    yield start, number
                start = number + 1


def prose_block(lines: Lines, first: int, end: int) -> Block:
    """A paragraph, or `Field: value` lines when at least two of them are and no more than one in three is not."""
    start, stop = lines.range(first, end)
    pairs = [number for number in range(first, end) if _KEY_VALUE.match(lines.content[number].strip())]
    if len(pairs) < MIN_PAIRS or pairs[0] != first or 3 * len(pairs) < 2 * (end - first):
        return Block(kind=BlockKind.PARAGRAPH, start=start, end=stop)
    ends = [*pairs[1:], end]
    rows = tuple(lines.range(one, after) for one, after in zip(pairs, ends, strict=True))
    return Block(kind=BlockKind.KEY_VALUE, start=start, end=stop, rows=rows)
