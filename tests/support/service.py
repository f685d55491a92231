"""A real `kroshka` in real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

START_S = 60.0


def environment(data: Path, **variables: str) -> dict[str, str]:
    """The hash embedder unless told otherwise: these tests are about processes, not about models."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KROSHKA_", "RAG_"))}
    return clean | {"KROSHKA_DATA": str(data), "EMBEDDER": "hash", "RERANKER": "none"} | variables


def kroshka(*arguments: str, data: Path, timeout_s: float = 120, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env=environment(data, **variables),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def start(*arguments: str, data: Path, log: Path, **variables: str) -> subprocess.Popen[bytes]:
    """Starts a command; its output goes to the file `log`."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments],
            env=environment(data, **variables),
            stdout=stream,
            stderr=stream,
        )


def wait_ready(data: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    """The address of the service, once it is ready."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}: {log.read_text()}")
        if (url := _address(data, process.pid)) is not None and _is_ready(url):
            return url
        time.sleep(0.05)
    raise AssertionError(f"not ready after {START_S} s: {log.read_text()}")


def _address(data: Path, pid: int) -> str | None:
    try:
        address = json.loads((data / "server.json").read_text())
    except (OSError, ValueError):
        return None
    return str(address["url"]) if address["pid"] == pid else None


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def running_server(data: Path, log: Path, **variables: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server on a free port, stopped at the end."""
    process = start("serve", "--port", "0", data=data, log=log, **variables)
    try:
        yield wait_ready(data, process, log), process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ends it politely; killed when it does not go in time."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait(20)


def all_documents(url: str) -> list[dict[str, Any]]:
    """Every document of the default workspace."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = httpx.get(f"{url}/v1/documents", params={"limit": 200} | cursor, timeout=30).raise_for_status().json()
        found += page["items"]
        if page.get("nextCursor") is None:
            return found
        cursor = {"cursor": page["nextCursor"]}
