"""The normalised form of a text: what spans, citations and chunks refer to."""

import re

_LINE_ENDS = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"\n{3,}")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """NUL dropped, line ends as LF, no white space at line ends, at most one blank line in a row.

    Lone surrogates, which no encoder takes, become U+FFFD. Idempotent; the order of all else is kept.
    """
    text = _LONE_SURROGATES.sub("\ufffd", text.replace("\0", "")).removeprefix("\ufeff")
    text = "\n".join(line.rstrip() for line in _LINE_ENDS.sub("\n", text).split("\n"))
    return _BLANK_LINES.sub("\n\n", text)
