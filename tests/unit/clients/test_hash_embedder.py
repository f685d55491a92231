"""`local-hash-ngram-v1` to the letter."""

import math
import struct
from collections import Counter

import numpy as np
import pytest

from app.clients.hash_embedder import HashEmbedder, fnv1a_32, hash_tokens, hash_vector
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable
from tests.support.aio import run


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x811C9DC5),
        (b"a", 0xE40C292C),
        (b"b", 0xE70C2DE5),
        (b"f", 0xE30C2799),
        (b"foo", 0xA9F37ED7),
        (b"foobar", 0xBF9CF968),
    ],
)
def test_the_hash_is_the_published_fnv1a(data: bytes, expected: int) -> None:
    assert fnv1a_32(data) == expected
    assert reference_fnv1a(data) == expected


def reference_fnv1a(data: bytes) -> int:
    """The definition: xor, then multiply modulo 2 to the 32."""
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


def test_words_grams_and_ideographs_are_the_tokens() -> None:
    assert Counter(hash_tokens("Ab_1 é")) == Counter(["w:ab_1", "g:ab", "g:b_", "g:_1", "g:ab_", "g:b_1", "w:é"])
    assert Counter(hash_tokens("图书")) == Counter(["w:图书", "u:图", "u:书", "g:图书"])


def test_text_is_folded_by_nfkc_and_lower_case() -> None:
    assert list(hash_tokens("ＡＢ")) == list(hash_tokens("ab"))
    assert list(hash_tokens("ﬁ")) == list(hash_tokens("fi"))
    assert list(hash_tokens("ПРИВЕТ")) == list(hash_tokens("привет"))


def test_marks_belong_to_words_and_punctuation_does_not() -> None:
    assert [token for token in hash_tokens("हिन्दी, o'clock") if token.startswith("w:")] == ["w:हिन्दी", "w:o", "w:clock"]


def test_a_vector_worked_out_by_hand_from_the_published_hash() -> None:
    """`ab` gives two tokens, `w:ab` and `g:ab`."""
    slots = [reference_fnv1a(b"w:ab") % 256, reference_fnv1a(b"g:ab") % 256]
    assert slots[0] != slots[1]
    vector = hash_vector("ab", {})
    expected = np.zeros(256, np.float32)
    expected[slots] = np.float32(1 / math.sqrt(2))
    assert vector.tobytes() == expected.tobytes()


def test_counts_weigh_before_the_norm() -> None:
    vector = hash_vector("q q q r", {})
    high, low = reference_fnv1a(b"w:q") % 256, reference_fnv1a(b"w:r") % 256
    assert vector[high] == np.float32(3 / math.sqrt(10))
    assert vector[low] == np.float32(1 / math.sqrt(10))


def test_the_vector_of_a_known_text_is_equal_bit_for_bit() -> None:
    vector = hash_vector("Насос 图书 pump", {})
    filled = {index: struct.pack("<f", value).hex() for index, value in enumerate(vector) if value}
    assert filled == GOLDEN


def test_remembered_tokens_change_nothing() -> None:
    slots: dict[str, int] = {}
    first = hash_vector("насос и насосы", slots)
    assert slots
    assert hash_vector("насос и насосы", slots).tobytes() == first.tobytes()


def test_a_text_without_a_word_has_the_vector_of_zeros() -> None:
    vectors = run(HashEmbedder().embed_passages(["--- !!! ...", "", "word"], Deadline.after(5)))
    assert not vectors.dense[:2].any()
    assert vectors.dense[2].any()


def test_the_deadline_is_seen_between_texts() -> None:
    ticks = iter(range(1_000))
    deadline = Deadline(at=3.0, clock=lambda: float(next(ticks)))
    with pytest.raises(EmbedderUnavailable) as caught:
        run(HashEmbedder().embed_passages(["one", "two", "three", "four", "five"], deadline))
    assert caught.value.cause == "timeout"


GOLDEN = {
    53: "2ef9643e",
    58: "2ef9643e",
    64: "2ef9643e",
    69: "2ef9643e",
    73: "2ef9643e",
    80: "2ef9643e",
    102: "2ef9e43e",
    109: "2ef9643e",
    125: "2ef9643e",
    155: "2ef9643e",
    158: "2ef9643e",
    160: "2ef9643e",
    177: "2ef9643e",
    187: "2ef9643e",
    204: "2ef9643e",
    218: "2ef9643e",
    226: "2ef9643e",
}
