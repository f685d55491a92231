"""The real embedding model, loaded once a test run, and a tiny file in the same format for what needs no real one."""

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.loading import load_encoder

TINY_PIECES: tuple[tuple[str, float], ...] = (
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("\u2581", -4.0),
    ("\u2581query:", -5.0),
    ("\u2581passage:", -5.0),
    ("a", -2.0),
    ("b", -2.5),
    ("ab", -4.0),
    ("\u2581ab", -3.0),
    ("c", -2.0),
    ("bc", -4.0),
    ("<mask>", 0.0),
)


def model_cache_dir(config: pytest.Config) -> Path:
    """Kept between runs under pytest's own cache, so that the graph is built once."""
    assert config.cache is not None
    return Path(config.cache.mkdir("local-model"))


def shared_encoder(config: pytest.Config) -> E5Encoder:
    """The real encoder: 0.8 s the first time in a process. Safe to share, since it keeps no state between calls."""
    return _load(model_cache_dir(config))


@cache
def _load(cache_dir: Path) -> E5Encoder:
    return load_encoder(cache_dir=cache_dir, threads=2)


class TinyModel:
    """Random weights for a network of 64 dimensions, two layers and two heads, written as a weights file."""

    hidden, layers, heads, inner, positions, epsilon = 64, 2, 2, 96, 24, 1e-6

    def __init__(self, pieces: Sequence[tuple[str, float]] = TINY_PIECES, *, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        self.pieces = pieces
        self.tensors: dict[str, tuple[int, npt.NDArray[np.uint8], int]] = {}
        self.matrices: dict[str, npt.NDArray[np.float32]] = {}
        self.vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._fill()

    def write(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path

    def to_bytes(self, *, magic: bytes = b"E5S1") -> bytes:
        texts = [piece.encode() for piece, _ in self.pieces]
        bounds = np.cumsum([0, *map(len, texts)]).astype("<u4")
        sizes = (self.hidden, self.layers, self.heads, self.inner, len(texts), self.positions, 1)
        character_map = struct.pack("<IB", 0xFF21, 1) + struct.pack("<I", ord("a"))
        head = b"".join(
            (
                magic,
                struct.pack("<I7IfI", 1, *sizes, self.epsilon, 32),
                struct.pack("<5I", len(texts), 0, 2, 1, 3),
                struct.pack("<Q", int(bounds[-1])),
                bounds.tobytes(),
                np.array([score for _, score in self.pieces], "<f4").tobytes(),
                b"".join(texts),
                struct.pack("<II", 1, len(character_map)),
                character_map,
            )
        )
        return head + self._directory(len(head))

    def _directory(self, start: int) -> bytes:
        """Names, types and places of the tensors, then the tensors."""
        names = {name: struct.pack("<H", len(name)) + name.encode() for name in self.tensors}
        offset = start + 4 + sum(len(name) + 21 for name in names.values())
        entries, body = [struct.pack("<I", len(names))], []
        for name, (kind, raw, values) in self.tensors.items():
            entries.append(names[name] + struct.pack("<BIQQ", kind, values, offset, raw.size))
            body.append(raw.tobytes())
            offset += raw.size
        return b"".join(entries + body)

    def _fill(self) -> None:
        hidden, inner = self.hidden, self.inner
        self._matrix("emb.word", len(self.pieces), hidden)
        self._vector("emb.pos", self.positions * hidden)
        self._vector("emb.type", hidden)
        self._norm("emb.ln")
        for layer in range(self.layers):
            prefix = f"l{layer}."
            for name, outputs, inputs in (
                ("q", hidden, hidden),
                ("k", hidden, hidden),
                ("v", hidden, hidden),
                ("ao", hidden, hidden),
                ("fi", inner, hidden),
                ("fo", hidden, inner),
            ):
                self._matrix(f"{prefix}{name}.w", outputs, inputs)
                self._vector(f"{prefix}{name}.b", outputs)
            self._norm(prefix + "aln")
            self._norm(prefix + "oln")

    def _norm(self, name: str) -> None:
        self._vector(name + ".w", self.hidden, around=1.0)
        self._vector(name + ".b", self.hidden)

    def _vector(self, name: str, size: int, *, around: float = 0.0) -> None:
        values = (around + 0.1 * self._random.normal(size=size)).astype("<f4")
        self.vectors[name] = values
        self.tensors[name] = (0, values.view(np.uint8), size)

    def _matrix(self, name: str, rows: int, columns: int) -> None:
        """Q4_0: blocks of a float16 scale and 32 nibbles, the first 16 values in the low ones."""
        scales = self._random.uniform(0.01, 0.05, size=(rows, columns // 32, 1)).astype("<f2")
        nibbles = self._random.integers(0, 16, size=(rows, columns // 32, 32), dtype=np.uint8)
        packed = nibbles[..., :16] | (nibbles[..., 16:] << 4)
        blocks = np.concatenate([scales.view(np.uint8).reshape(rows, columns // 32, 2), packed], axis=-1)
        values = (nibbles.astype(np.float32) - 8) * scales.astype(np.float32)
        self.matrices[name] = values.reshape(rows, columns)
        self.tensors[name] = (1, np.ascontiguousarray(blocks).reshape(-1), rows * columns)
