"""Reader of the weights file: multilingual-e5-small with 4-bit matrices, its word pieces and its character map.

Layout (little-endian): magic `E5S1` and a version; sizes; word pieces (end offsets, scores, one text blob); a map of
code points; a directory of named tensors. Type 0 is float32. Type 1 is Q4_0: rows of blocks of 32 values, each block
a float16 scale and 16 bytes, whose low nibbles are values 0–15 and high nibbles values 16–31, minus 8.
"""

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from app.domain.errors import ModelUnavailable
from app.domain.vectors import FloatArray

ByteArray = npt.NDArray[np.uint8]

BLOCK_VALUES = 32
BLOCK_BYTES = 18
_MAGIC = b"E5S1"
_FORMAT_VERSION = 1
_FLOAT32, _Q4 = 0, 1
_LARGEST_COUNT = 1 << 24


class Sizes(Struct, frozen=True, kw_only=True):
    """Dimensions of the network and ids of the special pieces."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    words: int
    positions: int
    types: int
    norm_epsilon: float
    pieces: int
    begin_id: int
    end_id: int
    pad_id: int
    unknown_id: int


class _Tensor(Struct, frozen=True):
    kind: int
    values: int
    offset: int
    size_bytes: int


class Q4File:
    """The file, mapped into memory. Every offset and count is checked; ModelUnavailable names what is wrong."""

    def __init__(self, data: ByteArray, *, name: str) -> None:
        self._data, self._name, self._at = data.view(np.ndarray), name, 0
        self.sizes = self._read_sizes()
        self._pieces_at = self._skip_pieces()
        self.character_map = self._read_character_map()
        self._tensors = self._read_directory()

    @classmethod
    def open(cls, path: Path) -> "Q4File":
        try:
            data = np.memmap(path, dtype=np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"model weights {path.name} cannot be read: {error}") from error
        return cls(data, name=path.name)

    def floats(self, name: str, *shape: int) -> FloatArray:
        """A float32 tensor of exactly this shape."""
        tensor = self._tensor(name, kind=_FLOAT32, values=int(np.prod(shape)))
        raw = self._data[tensor.offset : tensor.offset + tensor.size_bytes]
        return raw.view("<f4").reshape(shape)

    def q4_blocks(self, name: str, rows: int, columns: int) -> ByteArray:
        """A Q4 matrix as raw blocks, shape (rows, columns / 32, 18)."""
        tensor = self._tensor(name, kind=_Q4, values=rows * columns)
        raw = self._data[tensor.offset : tensor.offset + tensor.size_bytes]
        return raw.reshape(rows, columns // BLOCK_VALUES, BLOCK_BYTES)

    def _read_sizes(self) -> Sizes:
        if bytes(self._take(4)) != _MAGIC or self._u32() != _FORMAT_VERSION:
            raise self._broken("it is not an E5S1 file of version 1")
        hidden, layers, heads, feed_forward, words, positions, types = (self._count() for _ in range(7))
        epsilon = float(self._unpack("<f", 4))
        block = self._count()
        pieces, begin, end, pad, unknown = (self._count() for _ in range(5))
        if block != BLOCK_VALUES or hidden % BLOCK_VALUES or feed_forward % BLOCK_VALUES or hidden % max(heads, 1):
            raise self._broken("sizes do not fit blocks of 32 values")
        if not 0 < pieces <= words or max(begin, end, pad, unknown) >= pieces or not 0 < epsilon < 1:
            raise self._broken("sizes contradict each other")
        return Sizes(
            hidden=hidden,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            words=words,
            positions=positions,
            types=types,
            norm_epsilon=epsilon,
            pieces=pieces,
            begin_id=begin,
            end_id=end,
            pad_id=pad,
            unknown_id=unknown,
        )

    def pieces(self) -> list[tuple[str, float]]:
        """All word pieces with their scores (log probabilities), by id. Read anew at each call: 250,000 of them."""
        self._at, count = self._pieces_at, self.sizes.pieces
        blob_bytes = int(self._unpack("<Q", 8))
        offsets = self._take(4 * (count + 1)).view("<u4")
        scores = self._take(4 * count).view("<f4").astype(np.float64)
        blob = bytes(self._take(blob_bytes))
        if offsets[0] != 0 or offsets[-1] != blob_bytes or (np.diff(offsets.astype(np.int64)) < 0).any():
            raise self._broken("word pieces overlap")
        if not np.isfinite(scores).all():
            raise self._broken("a word piece has no finite score")
        bounds = offsets.tolist()
        try:
            texts = [blob[start:end].decode() for start, end in pairwise(bounds)]
        except UnicodeDecodeError as error:
            raise self._broken("a word piece is not UTF-8") from error
        return list(zip(texts, scores.tolist(), strict=True))

    def _skip_pieces(self) -> int:
        start = self._at
        blob_bytes = int(self._unpack("<Q", 8))
        self._take(4 * (2 * self.sizes.pieces + 1) + blob_bytes)
        return start

    def _read_character_map(self) -> dict[int, str]:
        count, size_bytes = self._count(), self._count()
        table, at, mapping = bytes(self._take(size_bytes)), 0, {}
        try:
            for _ in range(count):
                source, length = struct.unpack_from("<IB", table, at)
                targets = struct.unpack_from(f"<{length}I", table, at + 5)
                mapping[source] = "".join(map(chr, targets))
                at += 5 + 4 * length
        except (struct.error, ValueError, OverflowError) as error:
            raise self._broken("the character map is cut off or holds no code points") from error
        return mapping

    def _read_directory(self) -> dict[str, _Tensor]:
        tensors = {}
        for _ in range(self._count()):
            name = bytes(self._take(int(self._unpack("<H", 2)))).decode("ascii", "replace")
            kind, values, offset, size_bytes = struct.unpack("<BIQQ", self._take(21).data)
            if offset + size_bytes > len(self._data):
                raise self._broken(f"tensor {name} lies beyond its end")
            tensors[name] = _Tensor(kind, values, offset, size_bytes)
        return tensors

    def _tensor(self, name: str, *, kind: int, values: int) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise self._broken(f"tensor {name} is missing")
        expected = values * 4 if kind == _FLOAT32 else values // BLOCK_VALUES * BLOCK_BYTES
        if (tensor.kind, tensor.values, tensor.size_bytes) != (kind, values, expected):
            raise self._broken(f"tensor {name} has another type or size than the network needs")
        return tensor

    def _take(self, size_bytes: int) -> ByteArray:
        start, self._at = self._at, self._at + size_bytes
        if self._at > len(self._data):
            raise self._broken("it is cut off")
        return self._data[start : self._at]

    def _unpack(self, layout: str, size_bytes: int) -> int | float:
        value: int | float = struct.unpack(layout, self._take(size_bytes).data)[0]
        return value

    def _u32(self) -> int:
        return int(self._unpack("<I", 4))

    def _count(self) -> int:
        count = self._u32()
        if count > _LARGEST_COUNT:
            raise self._broken(f"a count of {count} is not plausible")
        return count

    def _broken(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"model weights {self._name} are broken: {what}")


def dequantise(blocks: ByteArray) -> FloatArray:
    """Q4 blocks of shape (rows, n, 18) as float32 of shape (rows, n * 32)."""
    scales = blocks[..., :2].copy().view("<f2").astype(np.float32)
    packed = blocks[..., 2:]
    values = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32) - np.float32(8)
    return (values * scales).reshape(len(blocks), -1)
