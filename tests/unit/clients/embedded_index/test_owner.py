"""The owner process and its clients, with real processes and sockets."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.clients.embedded_index import paths
from app.clients.embedded_index.connection import OwnerConnection
from app.clients.embedded_index.index import EmbeddedVectorIndex
from app.clients.embedded_index.wire import Flush, Ids, Request, Upsert, WireFilter, WirePoint, encode
from app.domain.deadline import Deadline
from app.domain.errors import IndexUnavailable, InvalidInput, ModelMismatch
from app.domain.index import IndexFilter, IndexQuery
from tests.support.aio import run
from tests.support.vector_index import WORKSPACE, point, sparse, unit

ALL = IndexFilter(workspace_id=WORKSPACE)
QUERY = IndexQuery(filter=ALL, limit=5, dense=unit(1, 0, 0, 0), lexical=sparse(1))


def soon() -> Deadline:
    return Deadline.after(20)


def with_index(folder: Path, scenario: Callable[[EmbeddedVectorIndex], Awaitable[None]], linger_s: float = 0.3) -> None:
    async def whole() -> None:
        index = EmbeddedVectorIndex(folder, dimension=4, linger_s=linger_s)
        try:
            await index.ensure_schema()
            await scenario(index)
        finally:
            await index.aclose()

    run(whole())


def owner_is_gone(folder: Path) -> bool:
    """Whether the lock is free within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        probe = subprocess.run(["flock", "--nonblock", str(folder / paths.LOCK), "true"], check=False)
        if probe.returncode == 0:
            return True
        time.sleep(0.05)
    return False


def test_what_was_flushed_survives_kill_9_and_the_next_call_starts_a_new_owner(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        await index.upsert([point(n, unit(1, 0, 0, 0), sparse(1)) for n in range(1, 51)], soon())
        await index.flush(soon())
        first = await index.owner_pid(soon())
        os.kill(first, signal.SIGKILL)
        answer = await index.search(QUERY, soon())
        assert len(answer.dense) == 5
        assert len(await index.ids(ALL, soon())) == 50
        assert await index.owner_pid(soon()) != first

    with_index(tmp_path / "index", scenario)


def test_writes_under_way_survive_the_death_of_the_owner(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        async def write(start: int) -> None:
            for n in range(start, start + 200, 20):
                await index.upsert([point(m, unit(1, 0, 0, 0), sparse(1)) for m in range(n, n + 20)], soon())

        async def kill() -> None:
            for _ in range(2):
                await asyncio.sleep(0.02)
                os.kill(await index.owner_pid(soon()), signal.SIGKILL)

        await asyncio.gather(write(1_000), write(2_000), kill())
        # The engine's log is not synced on every write; a process's death loses nothing of it all the same.
        assert len(await index.ids(ALL, soon())) == 400

    with_index(tmp_path / "index", scenario)


def test_two_clients_share_one_owner_which_leaves_when_both_are_gone(tmp_path: Path) -> None:
    folder = tmp_path / "index"

    async def scenario(index: EmbeddedVectorIndex) -> None:
        other = EmbeddedVectorIndex(folder, dimension=4)
        try:
            await other.upsert([point(7, unit(1, 0, 0, 0), sparse(1))], soon())
            assert await index.ids(ALL, soon()) == [UUID(int=7)]
            assert await index.owner_pid(soon()) == await other.owner_pid(soon())
        finally:
            await other.aclose()
        assert (await index.status(soon())).points == 1

    with_index(folder, scenario)
    assert owner_is_gone(folder)
    assert not (folder / paths.SOCKET).exists()


def test_many_processes_that_start_at_once_get_one_owner(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from app.clients.embedded_index.index import EmbeddedVectorIndex\n"
        "from app.domain.deadline import Deadline\n"
        "async def main():\n"
        "    index = EmbeddedVectorIndex(Path(sys.argv[1]), dimension=4)\n"
        "    await index.ensure_schema()\n"
        "    print(await index.owner_pid(Deadline.after(30)), flush=True)\n"
        "    sys.stdin.readline()\n"
        "    await index.aclose()\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "index")]
    starters = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    pids = {starter.stdout.readline() for starter in starters if starter.stdout}
    for starter in starters:
        starter.communicate("\n", timeout=30)
    assert len(pids) == 1
    assert all(starter.returncode == 0 for starter in starters)


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path: Path) -> None:
    folder = tmp_path / ("очень-длинное-имя-" * 4) / ("и-ещё-одно-" * 6)

    async def scenario(index: EmbeddedVectorIndex) -> None:
        await index.upsert([point(1, unit(1, 0, 0, 0), sparse(1))], soon())
        assert (await index.status(soon())).points == 1
        assert (folder / paths.POINTER).exists()

    with_index(folder, scenario)


def test_folder_and_socket_are_closed_to_others(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        assert (tmp_path / "index").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "index" / paths.SOCKET).stat().st_mode & 0o777 == 0o600

    with_index(tmp_path / "index", scenario)


def test_an_index_of_another_dimension_is_refused_with_both_numbers(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        other = EmbeddedVectorIndex(tmp_path / "index", dimension=8)
        try:
            with pytest.raises(ModelMismatch, match=r"4 dimensions.*8"):
                await other.ensure_schema()
        finally:
            await other.aclose()

    with_index(tmp_path / "index", scenario)


def test_an_owner_that_cannot_start_says_why_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "kroshka.json").write_text("not JSON")
    with pytest.raises(IndexUnavailable, match="JSONDecodeError"):
        with_index(folder, lambda index: asyncio.sleep(0))


def test_an_operation_that_waited_past_its_deadline_is_not_done(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        with pytest.raises(IndexUnavailable):
            await index.upsert([point(1, unit(1, 0, 0, 0), sparse(1))], Deadline.after(-1))
        reader, writer = await asyncio.open_unix_connection(str(paths.socket_path(tmp_path / "index")))
        wire = WirePoint(uuid4().bytes, b"\0\0\x80\x3f" + b"\0" * 12, b"", b"", {"workspaceId": str(WORKSPACE)})
        writer.write(encode(Request(1, time.monotonic() - 1, Upsert([wire]))))
        assert b"deadline" in await reader.read(1 << 16)
        writer.close()
        await writer.wait_closed()
        assert await index.ids(ALL, soon()) == []

    with_index(tmp_path / "index", scenario)


def test_a_batch_that_the_engine_rejects_leaves_nothing_behind(tmp_path: Path) -> None:
    good = WirePoint(uuid4().bytes, b"\0\0\x80\x3f" + b"\0" * 12, b"", b"", {"workspaceId": str(WORKSPACE)})
    poison = WirePoint(uuid4().bytes, b"\0\0\x80\x3f" * 3, b"", b"", {"workspaceId": str(WORKSPACE)})

    async def scenario(index: EmbeddedVectorIndex) -> None:
        connection = OwnerConnection(folder=tmp_path / "index", dimension=4, linger_s=0.3)
        try:
            with pytest.raises(InvalidInput, match="rejected"):
                await connection.call(Upsert([good, poison]), soon())
            assert (await connection.call(Ids(WireFilter(str(WORKSPACE))), soon())).ids == []
            await connection.call(Upsert([good]), soon())
            await connection.call(Flush(), soon())
        finally:
            await connection.aclose()
        os.kill(await index.owner_pid(soon()), signal.SIGKILL)
        assert [one.bytes for one in await index.ids(ALL, soon())] == [good.id]

    with_index(tmp_path / "index", scenario)


def test_a_client_that_speaks_nonsense_is_dropped_and_the_others_are_served(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        for nonsense in (struct.pack("<I", 1 << 31), struct.pack("<I", 4) + b"\xc1\xc1\xc1\xc1"):
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(10)
                channel.connect(str(paths.socket_path(tmp_path / "index")))
                await asyncio.to_thread(channel.sendall, nonsense)
                assert await asyncio.to_thread(channel.recv, 100) == b""
        assert (await index.status(soon())).points == 0

    with_index(tmp_path / "index", scenario)


def test_searches_are_answered_while_a_large_batch_is_written(tmp_path: Path) -> None:
    async def scenario(index: EmbeddedVectorIndex) -> None:
        await index.upsert([point(1, unit(1, 0, 0, 0), sparse(1))], soon())
        batch = [point(n, unit(0, 1, 0, 0), sparse(2)) for n in range(100, 4_100)]
        writing = asyncio.create_task(index.upsert(batch, soon()))
        answered_meanwhile = 0
        while not writing.done():
            answer = await index.search(QUERY, soon())
            assert answer.lexical[0].chunk_id == UUID(int=1)
            answered_meanwhile += not writing.done()
        await writing
        assert answered_meanwhile > 3
        assert (await index.status(soon())).points == 4_001

    with_index(tmp_path / "index", scenario)
