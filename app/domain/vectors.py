"""Vectors as they travel between rooms."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

FloatArray = npt.NDArray[np.float32]
"""float32, shape (dim,) for one vector or (n, dim) for several; L2-normalised unless said otherwise."""

TokenMatrix = npt.NDArray[np.int8]
"""int8, shape (tokens, dim): one row a token, mean removed, each row scaled to its own largest component.
The scale is not kept: rows are normalised when they are read."""


class SparseVector(Struct, frozen=True):
    """Term ids (uint32, unique, ascending) and their weights (finite float32), of equal length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


class QueryVectors(Struct, frozen=True):
    """One query's vectors: `dense` (dim,), and `tokens` (tokens, dim) float32 L2-normalised for late interaction."""

    dense: FloatArray
    tokens: FloatArray | None = None


class PassageVectors(Struct, frozen=True):
    """`dense` (n, dim); `tokens` has n matrices when the model offers late interaction, else None."""

    dense: FloatArray
    tokens: tuple[TokenMatrix, ...] | None = None


class EmbeddingModel(Struct, frozen=True, kw_only=True):
    """What the service must know of an embedding model.

    `weights_sha256` is empty when an upstream holds the weights. `max_input_tokens` counts prefix and special
    tokens; None means no limit. `min_score` is the model's own cosine floor, None where no single value separates
    relevant from irrelevant (measured for multilingual-e5-small).
    """

    name: str
    version: str
    dimension: int
    max_input_tokens: int | None = None
    weights_sha256: str = ""
    min_score: float | None = None
    late_interaction: bool = False

    @property
    def key(self) -> str:
        """Identity stored with every generation: vectors of different keys are never compared."""
        return f"{self.name}@{self.version}/{self.dimension}"
