"""The reader trusts nothing in the file."""

import struct
from pathlib import Path

import numpy as np
import pytest

from app.clients.local_model.q4_file import Q4File, dequantise
from app.domain.errors import ModelUnavailable
from tests.support.local_model import TINY_PIECES, TinyModel


def read(data: bytes) -> Q4File:
    return Q4File(np.frombuffer(data, np.uint8), name="tiny.bin")


def test_everything_that_was_written_is_read_back(tmp_path: Path) -> None:
    tiny = TinyModel()
    weights = Q4File.open(tiny.write(tmp_path / "tiny.bin"))
    assert (weights.sizes.hidden, weights.sizes.layers, weights.sizes.heads) == (64, 2, 2)
    assert weights.pieces() == [(piece, score) for piece, score in TINY_PIECES]
    assert weights.character_map == {0xFF21: "a"}
    np.testing.assert_array_equal(weights.floats("l1.fi.b", 96), tiny.vectors["l1.fi.b"])
    np.testing.assert_array_equal(dequantise(weights.q4_blocks("l0.q.w", 64, 64)), tiny.matrices["l0.q.w"])


def test_word_pieces_can_be_read_twice() -> None:
    weights = read(TinyModel().to_bytes())
    assert weights.pieces() == weights.pieces()


def test_another_magic_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match=r"tiny\.bin are broken: it is not an E5S1 file"):
        read(TinyModel().to_bytes(magic=b"GGUF"))


@pytest.mark.parametrize("size", [0, 3, 8, 40, 60, 90, 150, 200, 260, 400, 1000])
def test_a_file_that_is_cut_off_is_refused_wherever_the_cut_is(size: int) -> None:
    with pytest.raises(ModelUnavailable, match="broken"):
        read(TinyModel().to_bytes()[:size])


def test_a_tensor_that_points_beyond_the_end_is_refused() -> None:
    data = TinyModel().to_bytes()
    with pytest.raises(ModelUnavailable, match=r"tensor l1\.oln\.b lies beyond its end"):
        read(data[:-1])


def test_implausible_counts_are_refused_before_memory_is_asked_for() -> None:
    data = bytearray(TinyModel().to_bytes())
    struct.pack_into("<I", data, 8, 0xFFFFFFFF)
    with pytest.raises(ModelUnavailable, match="not plausible"):
        read(bytes(data))


def test_sizes_that_contradict_each_other_are_refused() -> None:
    data = bytearray(TinyModel().to_bytes())
    struct.pack_into("<I", data, 8 + 7 * 4 + 4 + 4, 10_000)
    with pytest.raises(ModelUnavailable, match="contradict"):
        read(bytes(data))


def test_a_tensor_of_another_size_than_the_network_needs_is_refused() -> None:
    weights = read(TinyModel().to_bytes())
    with pytest.raises(ModelUnavailable, match=r"l0\.q\.b has another type or size"):
        weights.floats("l0.q.b", 65)
    with pytest.raises(ModelUnavailable, match=r"l0\.q\.b has another type or size"):
        weights.q4_blocks("l0.q.b", 2, 32)
    with pytest.raises(ModelUnavailable, match="tensor pooler is missing"):
        weights.floats("pooler", 64)


def test_overlapping_word_pieces_are_refused() -> None:
    data = bytearray(TinyModel().to_bytes())
    offsets_at = 4 + struct.calcsize("<I7IfI") + struct.calcsize("<5I") + 8
    struct.pack_into("<I", data, offsets_at + 4, 9_999)
    with pytest.raises(ModelUnavailable, match="word pieces overlap"):
        read(bytes(data)).pieces()


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"gone\.bin cannot be read"):
        Q4File.open(tmp_path / "gone.bin")
    (tmp_path / "empty.bin").touch()
    with pytest.raises(ModelUnavailable, match=r"empty\.bin cannot be read"):
        Q4File.open(tmp_path / "empty.bin")
