"""One byte a component is enough."""

from pathlib import Path

import numpy as np
import pytest

from app.clients.local_model import token_rows
from app.clients.local_model.token_rows import int8_rows, load_token_mean, unit_rows
from app.domain.errors import ModelUnavailable


def test_direction_survives_one_byte_a_component() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 384)).astype(np.float32)
    stored = int8_rows(rows)
    cosines = (unit_rows(stored.astype(np.float32)) * unit_rows(rows)).sum(-1)
    assert stored.dtype == np.int8
    assert np.abs(stored).max(axis=-1).tolist() == [127] * 200
    assert cosines.min() > 0.9998


def test_a_row_of_zeros_stays_one() -> None:
    zeros = np.zeros((2, 8), np.float32)
    assert not int8_rows(zeros).any()
    assert not unit_rows(zeros).any()


def test_no_rows_are_no_rows() -> None:
    assert int8_rows(np.zeros((0, 8), np.float32)).shape == (0, 8)
    assert unit_rows(np.zeros((0, 8), np.float32)).shape == (0, 8)


def test_the_shipped_mean_fits_the_model() -> None:
    assert load_token_mean(384).shape == (384,)


@pytest.mark.parametrize(
    "content", [None, b"", b"\x93NUMPY", np.zeros(383, np.float32), np.zeros(384), np.full(384, np.nan, np.float32)]
)
def test_a_mean_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | np.ndarray | None
) -> None:
    path = tmp_path / "token_mean.npy"
    monkeypatch.setattr(token_rows, "MEAN_FILE", path)
    if isinstance(content, np.ndarray):
        np.save(path, content)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match=r"token_mean\.npy"):
        load_token_mean(384)
