"""What is put into chunks: ranges of the source that may be cut further when they do not fit."""

from collections.abc import Callable

from msgspec import Struct

from app.text.weights import WeightIndex, weight


class Limits(Struct, frozen=True, kw_only=True):
    """Sizes of a chunk's content in weighted characters, repeated headers, fences and overlap included.

    Pieces are collected up to `target`; one block that is larger stays whole up to `maximum`.
    """

    target: int
    maximum: int
    overlap: int

    def shrunk(self, maximum: int) -> "Limits":
        """The same within a smaller maximum."""
        return Limits(
            target=min(self.target, maximum), maximum=maximum, overlap=min(self.overlap, self.target // 2, maximum // 4)
        )


class Frame(Struct, frozen=True):
    """What a piece of a table or of code is given when the chunk does not hold the source's own: added text.

    `opening` goes before the piece and `closing` behind it, line breaks included; weights in weighted characters.
    """

    opening: str = ""
    closing: str = ""
    opening_weight: int = 0
    closing_weight: int = 0

    @classmethod
    def of(cls, opening: str, closing: str) -> "Frame":
        """With the weights counted."""
        return cls(opening, closing, weight(opening), weight(closing))


NO_FRAME = Frame()


class Unit(Struct, frozen=True, kw_only=True):
    """A range of the source. `cut` gives the units it falls into, finest last; None where it cannot be cut.

    `container` is the start of the block it is a piece of. `begins` and `finishes` tell that it holds the block's own
    header or fence. `overlaps`: a chunk that begins with it may repeat the end of what is before it in the container.
    `margin` is added before it on a line of its own (code whose fence is too large to repeat).
    """

    start: int
    end: int
    container: int
    cut: "Callable[[Unit, Limits], list[Unit]] | None" = None
    frame: Frame = NO_FRAME
    begins: bool = True
    finishes: bool = True
    overlaps: bool = False
    margin: str = ""

    @property
    def opening(self) -> str:
        return "" if self.begins else self.frame.opening

    @property
    def closing(self) -> str:
        return "" if self.finishes else self.frame.closing

    @property
    def opening_weight(self) -> int:
        return 0 if self.begins else self.frame.opening_weight

    @property
    def closing_weight(self) -> int:
        return 0 if self.finishes else self.frame.closing_weight


class Draft:
    """A chunk in the making: consecutive units, and where the overlap before them begins in the source."""

    def __init__(self, weigh: WeightIndex, first: Unit, *, overlap_start: int | None = None) -> None:
        self._weigh = weigh
        self.units = [first]
        self.overlap_start = overlap_start

    @property
    def first(self) -> Unit:
        return self.units[0]

    @property
    def last(self) -> Unit:
        return self.units[-1]

    def weight_with(self, unit: Unit | None = None) -> int:
        """Weight of the content, with one unit more."""
        last = self.last if unit is None else unit
        start = self.first.start if self.overlap_start is None else self.overlap_start
        margins = (len(self.units) + (unit is not None)) * len(last.margin)
        frame = self.first.opening_weight + last.closing_weight
        return frame + self._weigh(start, last.end) + margins

    def takes(self, unit: Unit) -> bool:
        """Whether the unit may follow: nothing follows text that had to be closed by added text, or has a margin."""
        same = self.last.container == unit.container
        return (same or not self.last.closing) and self.last.margin == unit.margin
