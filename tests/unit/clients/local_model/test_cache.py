"""The cache saves time and never harms."""

import logging
from pathlib import Path

import pytest

from app.clients.local_model.cache import GraphCache
from app.clients.local_model.weights import FileStamp

STAMP = FileStamp(71, 1_700_000_000_000_000_000, 42)


def filled(folder: Path, *, key: str = "k1") -> GraphCache:
    GraphCache(folder, key=key).store(weights=STAMP, graph=b"a graph")
    return GraphCache(folder, key=key)


def test_what_was_stored_is_there_at_the_next_start(tmp_path: Path) -> None:
    cache = filled(tmp_path / "new" / "folder")
    assert cache.graph() == b"a graph"
    assert cache.verified_weights == STAMP


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    cache = GraphCache(tmp_path, key="k1")
    assert cache.graph() is None
    assert cache.verified_weights is None


@pytest.mark.parametrize("damage", [b"", b"a grap", b"a Graph"])
def test_a_graph_with_other_bytes_counts_as_not_there(tmp_path: Path, damage: bytes) -> None:
    filled(tmp_path)
    (tmp_path / "e5-small-q4-k1.onnx").write_bytes(damage)
    assert GraphCache(tmp_path, key="k1").graph() is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"weights": [1, 2, 3], "graph_sha256": 5}'])
def test_a_broken_manifest_counts_as_not_there(tmp_path: Path, damage: bytes) -> None:
    filled(tmp_path)
    (tmp_path / "e5-small-q4-k1.json").write_bytes(damage)
    cache = GraphCache(tmp_path, key="k1")
    assert cache.graph() is None
    assert cache.verified_weights is None


def test_a_damaged_graph_is_replaced_by_the_next_store(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "e5-small-q4-k1.onnx").write_bytes(b"damage")
    assert filled(tmp_path).graph() == b"a graph"


def test_graphs_of_other_versions_go_and_foreign_files_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.onnx").write_bytes(b"mine")
    filled(tmp_path, key="old")
    filled(tmp_path, key="new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "e5-small-q4-new.json",
        "e5-small-q4-new.onnx",
        "notes.onnx",
    ]


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        GraphCache(blocked / "cache", key="k1").store(weights=STAMP, graph=b"a graph")
    assert "model cache not written" in caplog.text


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    cache = filled(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    cache.store(weights=STAMP, graph=b"another graph")
    assert GraphCache(tmp_path, key="k1").graph() == b"a graph"
    assert not list(tmp_path.glob("*.part"))
