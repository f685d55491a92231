"""The folder that keeps what is slow to make: the built graph, and the proof that the weights were hashed."""

import hashlib
import logging
import os
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
from msgspec import Struct

from app.clients.local_model.weights import FileStamp

_LOG = logging.getLogger(__name__)
_PREFIX = "e5-small-q4-"


class Manifest(Struct, frozen=True, kw_only=True):
    """Written after the graph: a graph without its manifest, or with other bytes than it names, is built again."""

    weights: FileStamp
    graph_sha256: str


class GraphCache:
    """One graph of one builder, weights and runtime, all of which are in `key`.

    A file that is missing, cut off or changed counts as not there. Several processes may write at once: each file is
    replaced as a whole, and all would write the same bytes.
    """

    def __init__(self, folder: Path, *, key: str) -> None:
        self._graph_path = folder / f"{_PREFIX}{key}.onnx"
        self._manifest_path = folder / f"{_PREFIX}{key}.json"
        self._manifest = self._read_manifest()

    @property
    def verified_weights(self) -> FileStamp | None:
        """The stamp of the weights file whose SHA-256 was right."""
        return self._manifest.weights if self._manifest else None

    def graph(self) -> bytes | None:
        """The serialised graph, if its bytes are those that were stored."""
        if self._manifest is None:
            return None
        try:
            graph = self._graph_path.read_bytes()
        except OSError:
            return None
        return graph if hashlib.sha256(graph).hexdigest() == self._manifest.graph_sha256 else None

    def store(self, *, weights: FileStamp, graph: bytes) -> None:
        """Keeps both for the next start. A folder that cannot be written costs time at every start, nothing else."""
        manifest = Manifest(weights=weights, graph_sha256=hashlib.sha256(graph).hexdigest())
        try:
            self._graph_path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._graph_path, graph)
            _replace(self._manifest_path, msgspec.json.encode(manifest))
            self._drop_older()
        except OSError as error:
            _LOG.warning("model cache not written: %s", error)

    def _read_manifest(self) -> Manifest | None:
        try:
            return msgspec.json.decode(self._manifest_path.read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError):
            return None

    def _drop_older(self) -> None:
        """Graphs of other versions: 14 MB each, and never read again."""
        keep = {self._graph_path, self._manifest_path}
        for path in self._graph_path.parent.glob(f"{_PREFIX}*"):
            if path not in keep and path.suffix in (".onnx", ".json"):
                path.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    """All of the bytes or none of them, also when the process dies on the way."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).replace(path)
