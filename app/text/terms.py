"""Text to terms: words, their stems, identifiers whole and in parts, bigrams of Han and kana."""

import itertools
import re
import threading
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import Stemmer
from icu4py.breakers import WordBreaker

from app.text.stopwords import STOP_WORDS

MAX_TERM_CHARS = 100
"""Longer words are cut: nobody searches for the middle of a base64 blob."""

_ASIAN = r"\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ASIAN_RUN = re.compile(f"([{_ASIAN}]+)")
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff]")
# A stress mark over a Russian vowel is a hint for reading, not a part of the word.
_STRESS = re.compile("(?<=[а-яА-Я])[\u0300\u0301]")
# Anything past these blocks may need a dictionary to find its words (Thai) or holds marks that `\w` leaves out.
_NEEDS_ICU = re.compile(r"[\u0590-\u1dff\ua000-\uffef]")
# Words joined by a character that identifiers, versions and addresses are joined by; C++ and C# are words, too.
_WORD = re.compile(r"\w+(?:(?:[.\-_:/@+'’]|(?<=\d),(?=\d))\w+)*(?:(?<=\b[a-z])(?:\+\+|#))?")
_JOINERS = re.compile(r"[\W_]+")
_POSSESSIVE = re.compile(r"['’]s$")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_LATIN = re.compile(r"[a-z\u00c0-\u024f]")


class Term(NamedTuple):
    """`counts`: it is one of the text's words (for its length). `stop`: a function word."""

    text: str
    counts: bool = True
    stop: bool = False


class Stemmers(threading.local):
    """Snowball stemmers keep state in C, so every thread has its own."""

    def __init__(self) -> None:
        self.russian = Stemmer.Stemmer("russian")
        self.english = Stemmer.Stemmer("english")


def terms(text: str, stemmers: Stemmers, *, query: bool = False) -> Iterator[Term]:
    """All terms in order, repeated as often as they stand there.

    A document's Han characters are also terms of their own; a query uses them only when a run is one character long.
    """
    for place, piece in enumerate(_ASIAN_RUN.split(_normalized(text))):
        if place % 2:
            yield from _asian_terms(piece, query=query)
        elif piece:
            yield from _words(piece, stemmers)


def _normalized(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower().replace("ё", "е")
    return _STRESS.sub("", folded)


def _asian_terms(run: str, *, query: bool) -> Iterator[Term]:
    if len(run) == 1:
        yield Term(run)
        return
    for first, second in itertools.pairwise(run):
        yield Term(first + second)
    if not query:
        for character in run:
            if not _KANA.match(character):
                yield Term(character, counts=False)


def _words(piece: str, stemmers: Stemmers) -> Iterator[Term]:
    """Between two blanks where no other script is met, our own rule (it keeps identifiers whole); else ICU's words."""
    for stretch in piece.split():
        if _NEEDS_ICU.search(stretch):
            words = (word for word in WordBreaker(stretch, "root") if any(map(str.isalnum, word)))
            yield from (Term(stem(word[:MAX_TERM_CHARS], stemmers)) for word in words)
        else:
            for word in _WORD.findall(stretch):
                yield from _word_terms(word, stemmers)


def _word_terms(word: str, stemmers: Stemmers) -> Iterator[Term]:
    """A plain word is one term; an identifier is a term as a whole, and so is each of its parts."""
    word = _POSSESSIVE.sub("", word)[:MAX_TERM_CHARS]
    if word in STOP_WORDS:
        yield Term(stem(word, stemmers), counts=False, stop=True)
        return
    parts = [part for part in _JOINERS.split(word) if part]
    if len(parts) > 1 or (parts and parts[0] != word):
        yield Term(word.strip("_"), counts=False)
    for part in parts:
        stop = part in STOP_WORDS
        yield Term(stem(part, stemmers), counts=not stop, stop=stop)


def stem(word: str, stemmers: Stemmers) -> str:
    """Snowball Russian for Cyrillic words, English for Latin ones, anything else (and what holds a digit) as it is.

    The behaviour of PostgreSQL's `russian` text-search configuration.
    """
    if any(map(str.isdigit, word)):
        return word
    if _CYRILLIC.search(word):
        return str(stemmers.russian.stemWord(word))
    if _LATIN.search(word):
        return str(stemmers.english.stemWord(word))
    return word
