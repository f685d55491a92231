"""Where the owner and its clients find each other in an index folder."""

import os
import tempfile
from pathlib import Path

LOCK = "owner.lock"
LOG = "owner.log"
SOCKET = "owner.sock"
POINTER = "owner.sock.path"
# The system's limit is 104 to 108 bytes.
MAX_SOCKET_PATH_BYTES = 100


def new_socket_path(folder: Path) -> Path:
    """In the folder; in a new private temporary folder when the path would be too long for the system."""
    path = folder / SOCKET
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    return Path(tempfile.mkdtemp(prefix="kroshka-")) / "s"


def publish_socket_path(folder: Path, address: Path) -> None:
    """Tells clients of a socket that is elsewhere."""
    pointer = folder / POINTER
    if address.parent == folder:
        pointer.unlink(missing_ok=True)
        return
    temporary = pointer.with_suffix(".tmp")
    temporary.write_text(str(address))
    temporary.replace(pointer)


def socket_path(folder: Path) -> Path:
    """Where to connect; the place may not exist (yet)."""
    try:
        return Path((folder / POINTER).read_text())
    except FileNotFoundError:
        return folder / SOCKET
