"""`local-hash-ngram-v1`: an embedder with no model and no network, chosen by configuration and never silently.

Words, their character 2- and 3-grams and single CJK ideographs are hashed (FNV-1a, Fowler, Noll and Vo) into 256
counts. Good for tests and demonstrations: fused with BM25 it is worse than BM25 alone.
"""

import asyncio
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable
from app.domain.vectors import EmbeddingModel, FloatArray, PassageVectors, QueryVectors

NAME, VERSION = "local-hash-ngram", "v1"
DIMENSION = 256
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD))
_WORD_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd"})


class HashEmbedder:
    """Queries and passages are the same to it. A text without a word has the vector of zeros."""

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel(name=NAME, version=VERSION, dimension=DIMENSION)

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        return QueryVectors(dense=(await self._embed([text], deadline))[0])

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        return PassageVectors(dense=await self._embed(texts, deadline))

    async def aclose(self) -> None:
        """Nothing to let go of."""

    async def _embed(self, texts: Sequence[str], deadline: Deadline) -> FloatArray:
        return await asyncio.to_thread(_embed_until, texts, deadline)


def _embed_until(texts: Sequence[str], deadline: Deadline) -> FloatArray:
    rows, slots = np.zeros((len(texts), DIMENSION), np.float32), dict[str, int]()
    for row, text in zip(rows, texts, strict=True):
        if deadline.expired():
            raise EmbedderUnavailable("no time was left for embedding", cause="timeout")
        row[:] = hash_vector(text, slots)
    return rows


def hash_vector(text: str, slots: dict[str, int]) -> FloatArray:
    """Shape (256,), float32, L2-normalised; equal bit for bit everywhere. `slots` remembers tokens across texts."""
    counts = [0] * DIMENSION
    for token, count in Counter(hash_tokens(text)).items():
        if token not in slots:
            slots[token] = fnv1a_32(token.encode("utf-8", "replace")) % DIMENSION
        counts[slots[token]] += count
    norm = math.sqrt(sum(count * count for count in counts)) or 1.0
    return np.array([count / norm for count in counts], dtype=np.float32)


def hash_tokens(text: str) -> Iterator[str]:
    """`w:` words, `g:` their 2- and 3-grams, `u:` single ideographs, of the text in NFKC and lower case."""
    for word in _words(unicodedata.normalize("NFKC", text).lower()):
        yield f"w:{word}"
        yield from (f"u:{character}" for character in word if _is_ideograph(character))
        for size in (2, 3):
            yield from (f"g:{word[start : start + size]}" for start in range(len(word) - size + 1))


def fnv1a_32(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def _words(text: Iterable[str]) -> Iterator[str]:
    """Maximal runs of letters, marks, digits and `_`."""
    for inside, run in groupby(text, key=_in_word):
        if inside:
            yield "".join(run)


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character) in _WORD_CATEGORIES


def _is_ideograph(character: str) -> bool:
    point = ord(character)
    return point >= _IDEOGRAPHS[0][0] and any(first <= point <= last for first, last in _IDEOGRAPHS)
