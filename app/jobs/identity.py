"""Who a worker is, so that another process of this host can tell whether it still lives."""

import hashlib
import os
import platform
from pathlib import Path

from msgspec import Struct

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OWN_STAT = Path("/proc/self/stat")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


class WorkerIdentity(Struct, frozen=True, kw_only=True):
    """`host` names this host since its boot (and this container), `started` guards against reused process ids."""

    host: str
    pid: int
    started: str

    @classmethod
    def here(cls) -> "WorkerIdentity":
        """This process."""
        pid = os.getpid()
        return cls(host=_host(), pid=pid, started=_started(pid) or "0")

    @property
    def prefix(self) -> str:
        """What the ids of all workers of this host begin with."""
        return f"{self.host}:"

    def worker(self, number: int) -> str:
        """Id of this process's worker loop of this number."""
        return f"{self.host}:{self.pid}:{self.started}:{number}"

    def is_alive(self, worker: str) -> bool:
        """Whether the process of this worker runs. A worker of another host counts as alive: its lease runs out."""
        host, pid, started, _number = worker.rsplit(":", 3)
        if host != self.host:
            return True
        return _started(int(pid)) == started


def _host() -> str:
    # Process ids mean something only since this boot and in this pid namespace (containers share a boot id).
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    namespace = str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""
    digest = hashlib.blake2s(f"{boot}/{namespace}".encode(), digest_size=6).hexdigest()
    return f"{platform.node() or 'localhost'}-{digest}"


def _started(pid: int) -> str | None:
    """When this process started, in the system's own units ("0" where unknown); None if it does not run."""
    if _OWN_STAT.exists():
        return _started_linux(Path(f"/proc/{pid}/stat"))
    if platform.system() == "Windows":
        return "0"  # signal 0 would end the process there; leases run out by themselves
    return "0" if _answers(pid) else None


def _started_linux(stat: Path) -> str | None:
    try:
        # "pid (name) state …": the name may hold spaces and brackets. Field 22 is the start in clock ticks.
        state, *rest = stat.read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else rest[18]


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
