"""Where a text may be cut: sentences, lines, words, grapheme clusters (UAX #29 by ICU), as ends of pieces.

Every function gives the ends of consecutive pieces that together are the whole text. ICU's own offsets count UTF-16
code units, so the lengths of the pieces are added up instead.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from icu4py.breakers import CharacterBreaker, SentenceBreaker, WordBreaker

LOCALE = "en"
_ABBREVIATIONS = (
    "т е|т д|т п|т к|и о|г|гг|в|вв|п|пп|ст|ч|см|ср|ул|д|кв|корп|оф|тел|доб|руб|коп|тыс|млн|млрд|им|рис|табл|стр|с|гл|"
    "прим|напр|др|пр|обл|р|пос|dr|mr|mrs|ms|prof|st|fig|no|vs|eg|ie|e g|i e|etc|inc|ltd|co|approx|cf|ca|vol|pp|al"
)
_SHORT = _ABBREVIATIONS.replace(" ", r"[.]\s*") + r"|[^\W\d_]"
_UNFINISHED = re.compile(rf"(?:^|[\s(\[«\"'.])(?:{_SHORT})\.\s*$", re.I)
_WORDS = re.compile(r"\S+\s*|\s+")
_PARAGRAPHS = re.compile(r"(?:[^\n]|\n(?!\n))+\n*|\n+")
_CELLS = re.compile(r"(?:[^|\\]|\\.?)*\|\s*|(?:[^|\\]|\\.?)+", re.S)
_LINES = re.compile(r"[^\n]*\n+|[^\n]+")


def sentence_ends(text: str) -> list[int]:
    """Sentences; a line break inside a paragraph is a space, and an abbreviation or an initial ends none."""
    pieces = [str(piece) for piece in SentenceBreaker(text.replace("\n", " "), LOCALE)]
    ends = list(accumulate(map(len, pieces)))
    return [
        end for end, piece in zip(ends, pieces, strict=True) if end == len(text) or not _UNFINISHED.search(piece[-24:])
    ]


def cell_ends(text: str) -> list[int]:
    """Cells of a table's row, each with the bar behind it."""
    return _ends(_CELLS.findall(text))


def raw_sentence_ends(text: str) -> list[int]:
    """ICU's sentences as they are: line breaks and abbreviations end one."""
    return _ends(SentenceBreaker(text, LOCALE))


def paragraph_ends(text: str) -> list[int]:
    """Paragraphs between blank lines."""
    return _ends(_PARAGRAPHS.findall(text))


def line_ends(text: str) -> list[int]:
    """Lines."""
    return _ends(_LINES.findall(text))


def spaced_word_ends(text: str) -> list[int]:
    """Words between white space."""
    return _ends(_WORDS.findall(text))


def word_ends(text: str) -> list[int]:
    """ICU's words, by dictionary in scripts without spaces; what holds no letter or digit stays with what is before."""
    pieces = [str(piece) for piece in WordBreaker(text, LOCALE)]
    ends = list(accumulate(map(len, pieces)))
    following = [*pieces, "x"][1:]
    return [end for end, after in zip(ends, following, strict=True) if any(map(str.isalnum, after))]


def grapheme_ends(text: str) -> list[int]:
    """Grapheme clusters: what a reader sees as one character."""
    return _ends(CharacterBreaker(text, LOCALE))


def code_point_ends(text: str) -> Sequence[int]:
    """Code points."""
    return range(1, len(text) + 1)


def _ends(pieces: Iterable[object]) -> list[int]:
    return list(accumulate(len(str(piece)) for piece in pieces))
