"""Everything is checked before the first point is written: a rejected update is not a no-op in the engine."""

import itertools
from collections.abc import Sequence

import numpy as np

from app.domain.errors import InvalidInput, LimitExceeded
from app.domain.index import IndexPoint
from app.domain.vectors import FloatArray, SparseVector

MAX_TERM = 2**32 - 1


def check_points(points: Sequence[IndexPoint], *, dimension: int) -> None:
    """Raises InvalidInput that names the point by its place in the batch."""
    seen = set()
    for place, point in enumerate(points):
        where = f"/points/{place}"
        if point.chunk_id in seen:
            raise InvalidInput(f"{where}/chunkId", f"{point.chunk_id} is in the batch twice")
        seen.add(point.chunk_id)
        check_dense(point.dense, dimension=dimension, pointer=f"{where}/dense")
        check_sparse(point.lexical, pointer=f"{where}/lexical")


def check_dense(vector: FloatArray, *, dimension: int, pointer: str) -> None:
    if vector.shape != (dimension,):
        raise InvalidInput(pointer, f"has shape {vector.shape}, this index holds ({dimension},)", limit=dimension)
    if not np.isfinite(vector).all():
        raise InvalidInput(pointer, "holds a number that is not finite")


def check_sparse(vector: SparseVector, *, pointer: str) -> None:
    indices = vector.indices
    if len(indices) != len(vector.values):
        raise InvalidInput(pointer, f"{len(indices)} indices but {len(vector.values)} values")
    if any(a >= b for a, b in itertools.pairwise(indices)):
        raise InvalidInput(pointer, "indices must be unique and ascending")
    if indices and not 0 <= indices[0] <= indices[-1] <= MAX_TERM:
        raise LimitExceeded(pointer, actual=max(indices), limit=MAX_TERM, unit="as an index")
    if not np.isfinite(np.asarray(vector.values, dtype=np.float64)).all() or any(value <= 0 for value in vector.values):
        raise InvalidInput(pointer, "values must be finite and positive")
