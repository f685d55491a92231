"""Units into chunks: greedily up to the target, cutting only what does not fit, coarse before fine."""

from collections.abc import Callable, Sequence

from app.ingestion.chunking.units import Draft, Limits, Unit
from app.text.segmentation import sentence_ends, spaced_word_ends
from app.text.weights import WeightIndex

SMALL = 4
HALF = 2
Ends = Callable[[str], Sequence[int]]
WHOLE_SENTENCES: tuple[Ends, ...] = (sentence_ends, spaced_word_ends)


class Packer:
    """Packs the units of one section. `overlap_cuts` say where overlap may begin, first that fits."""

    def __init__(
        self, source: str, *, weigh: WeightIndex, limits: Limits, overlap_cuts: tuple[Ends, ...] = WHOLE_SENTENCES
    ) -> None:
        self._source, self._weigh, self._limits, self._overlap_cuts = source, weigh, limits, overlap_cuts
        self._drafts: list[Draft] = []
        self._open: Draft | None = None

    def pack(self, units: Sequence[Unit], *, after: Draft | None = None) -> list[Draft]:
        """Drafts in order. `after` is the draft before them, which the first may overlap."""
        self._drafts, self._open = ([after] if after else []), None
        waiting = list(reversed(units))
        while waiting:
            unit = waiting.pop()
            if not self._place(unit):
                waiting += reversed(self._pieces(unit))
        self._close()
        drafts = self._drafts[1:] if after else self._drafts
        return self._without_small_end(drafts)

    def _place(self, unit: Unit) -> bool:
        """Puts the unit into the open draft or a new one; False when it must be cut first."""
        draft, limits = self._open, self._limits
        if draft is not None and draft.takes(unit):
            total = draft.weight_with(unit)
            if total <= limits.target or (total <= limits.maximum and self._is_small(draft)):
                draft.units.append(unit)
                return True
        alone = Draft(self._weigh, unit).weight_with()
        if alone > limits.maximum and unit.cut is not None:
            return False
        self._close()
        self._open = Draft(self._weigh, unit, overlap_start=self._overlap_start(unit, limits.maximum - alone))
        return True

    def _pieces(self, unit: Unit) -> list[Unit]:
        if self._open is not None and self._open.weight_with() * HALF >= self._limits.target:
            self._close()
        return unit.cut(unit, self._limits) if unit.cut else []

    def _is_small(self, draft: Draft) -> bool:
        return draft.weight_with() * SMALL < self._limits.target

    def _close(self) -> None:
        if self._open is not None:
            self._drafts.append(self._open)
            self._open = None

    def _without_small_end(self, drafts: list[Draft]) -> list[Draft]:
        """A few words at the end of a section go to the chunk before, as far as the maximum allows."""
        if len(drafts) < HALF or not self._is_small(drafts[-1]):
            return drafts
        *kept, before, last = drafts
        if not before.takes(last.first):
            return drafts
        joined = Draft(self._weigh, before.first, overlap_start=before.overlap_start)
        joined.units = [*before.units, *last.units]
        return [*kept, joined] if joined.weight_with() <= self._limits.maximum else drafts

    def _overlap_start(self, unit: Unit, room: int) -> int | None:
        """Where the text begins that the new draft repeats; None for no overlap."""
        before = self._drafts[-1] if self._drafts else None
        room = min(room, self._limits.overlap)
        if before is None or room <= 0 or not unit.overlaps or before.last.container != unit.container:
            return None
        floor = max(unit.container, before.first.start, unit.start - 4 * self._limits.overlap)
        window = self._source[floor : unit.start]
        for ends in self._overlap_cuts:
            starts = [floor + end for end in ends(window)[:-1]]
            fitting = [start for start in starts if self._weigh(start, unit.start) <= room]
            if fitting and self._source[fitting[0] : unit.start].strip():
                return fitting[0]
        return None
