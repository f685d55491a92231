"""Who is alive on this host."""

import os
import subprocess
import sys

import msgspec
import pytest

from app.jobs.identity import WorkerIdentity


def test_this_process_is_alive_and_its_workers_differ() -> None:
    here = WorkerIdentity.here()
    assert here.worker(0) != here.worker(1)
    assert here.worker(3).startswith(here.prefix)
    assert here.is_alive(here.worker(3))


def test_an_ended_process_is_dead() -> None:
    script = "from app.jobs.identity import WorkerIdentity; print(WorkerIdentity.here().worker(0))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    worker = ended.stdout.strip()
    here = WorkerIdentity.here()
    assert worker.startswith(here.prefix)
    assert not here.is_alive(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="start times of processes are read from /proc")
def test_a_reused_process_id_is_another_worker() -> None:
    here = WorkerIdentity.here()
    earlier = msgspec.structs.replace(here, started="12345")
    assert not here.is_alive(earlier.worker(0))


@pytest.mark.skipif(sys.platform != "linux", reason="process states are read from /proc")
def test_a_killed_process_is_dead_before_anybody_has_waited_for_it() -> None:
    script = "import time; from app.jobs.identity import WorkerIdentity as W; print(W.here().worker(0), flush=True)"
    here = WorkerIdentity.here()
    command = [sys.executable, "-c", f"{script}; time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        worker = child.stdout.readline().strip()
        assert here.is_alive(worker)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not here.is_alive(worker)


def test_workers_of_other_hosts_count_as_alive() -> None:
    here = WorkerIdentity.here()
    assert here.is_alive(msgspec.structs.replace(here, host="elsewhere-123", pid=2**30).worker(0))
