"""Weighted characters: a cheap estimate of how many tokens a text has.

Han, kana and Hangul letters, and every character of an unbroken run of 64 or more UTF-16 code units (addresses,
hashes, base64), count three; any other code point counts one.
"""

import re
from array import array
from itertools import accumulate

LONG_RUN = 64
HEAVY = 3
_RUNS = re.compile(r"\S{32,}")
_CJK_CLASS = (
    "\u1100-\u11ff\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
_CJK = re.compile(f"[{_CJK_CLASS}]+")


def weight(text: str) -> int:
    """Size of the text in weighted characters."""
    return sum(_character_weights(text))


class WeightIndex:
    """Weights of any range of one text in constant time.

    A run that is long in the whole text is heavy in every part of it, so a range never weighs less than its slice.
    """

    def __init__(self, text: str) -> None:
        self._sums = array("L", accumulate(_character_weights(text), initial=0))

    def __call__(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start]


def _character_weights(text: str) -> bytearray:
    weights = bytearray(b"\x01" * len(text))
    if not text.isascii():
        for found in _CJK.finditer(text):
            weights[found.start() : found.end()] = bytes((HEAVY,)) * len(found[0])
    for found in _RUNS.finditer(text):
        if _utf16_units(found[0]) >= LONG_RUN:
            weights[found.start() : found.end()] = bytes((HEAVY,)) * len(found[0])
    return weights


def _utf16_units(run: str) -> int:
    return len(run) if run.isascii() else len(run.encode("utf-16-le", "surrogatepass")) // 2
