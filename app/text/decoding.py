"""Bytes to text when nobody says which encoding it is.

Order: byte order mark; NUL and control bytes, which mean UTF-16 without a mark or no text at all; strict UTF-8; then
the single-byte encoding whose reading looks most like language.
"""

import codecs
import re

SAMPLE_BYTES = 64 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROL_SHARE = 0.002
SINGLE_BYTE = ("cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic", "cp1252")
_PUNCTUATION = "«»—–№…“”„’\u00a0§°"
_COMMON = {letter: 10.0 - place // 3 for place, letter in enumerate("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё")}


class UndecodableError(ValueError):
    """The bytes are not text in any encoding that is known here."""


def decode(data: bytes) -> str:
    """The text of a file. Raises UndecodableError for binary data and broken UTF-8/16/32 with a byte order mark."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data, encoding)
    if _CONTROL.search(data[:SAMPLE_BYTES]):
        return _wide_or_stained(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _single_byte(data)


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise UndecodableError(f"it begins with the mark of {name} but byte {error.start} does not fit") from error


def _wide_or_stained(data: bytes) -> str:
    """UTF-16 without a mark, or text in which a few control characters are scattered."""
    sample = data[:SAMPLE_BYTES]
    encoding = _utf16_order(sample)
    if encoding is not None and len(data) % 2 == 0:
        return _strictly(data, encoding)
    if len(_CONTROL.findall(sample)) > 1 + len(sample) * _CONTROL_SHARE:
        raise UndecodableError("it holds control characters: this is not a text file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UndecodableError("it holds control characters and is not UTF-8") from error


def _utf16_order(sample: bytes) -> str | None:
    """High bytes of UTF-16 take few values (0 for Latin, 4 for Cyrillic), low bytes many: tells which come first."""
    if len(sample) < 4:
        return None
    first, second = sample[0::2], sample[1::2]
    few = [sum(byte < 9 for byte in half) / len(half) for half in (first, second)]
    if few[1] > 0.3 and few[0] < 0.05:
        return "utf-16-le"
    if few[0] > 0.3 and few[1] < 0.05:
        return "utf-16-be"
    return None


def _single_byte(data: bytes) -> str:
    """The candidate whose reading scores best; bytes that it does not define become U+FFFD."""
    sample = data[:SAMPLE_BYTES]
    best = max(SINGLE_BYTE, key=lambda encoding: _plausibility(sample.decode(encoding, "replace")))
    return data.decode(best, "replace")


def _plausibility(text: str) -> float:
    """Mean score of the characters beyond ASCII: frequent Russian letters gain, symbols and odd capitals lose."""
    score, count, before = 0.0, 0, " "
    for character in text:
        if character >= "\x80":
            count += 1
            score += _character_score(character, before)
        before = character
    return score / max(count, 1)


def _character_score(character: str, before: str) -> float:
    """What one character beyond ASCII tells, knowing the one before it."""
    if character == "\ufffd":
        return -30.0
    if not character.isalpha():
        return 1.0 if character in _PUNCTUATION else -8.0
    if character.isupper() and before.islower():
        return -8.0
    after_latin = before.isalpha() and before.isascii()
    if not "\u0400" <= character <= "\u04ff":
        return 3.0 if before.isascii() else -4.0
    return _COMMON.get(character.lower(), -6.0) - (12.0 if after_latin else 0.0) - float(character.isupper())
