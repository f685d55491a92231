"""A SQLite file that several processes share, that survives being killed, and that gives space back."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import numpy as np
import pytest

from app.clients.token_vectors import SqliteTokenVectorStore
from app.domain.errors import InvalidInput, StoreUnavailable
from app.domain.vectors import TokenMatrix
from tests.support.aio import run

NAMESPACE = UUID(int=7)
WRITER = """
import asyncio, sys
from pathlib import Path
from uuid import UUID, uuid5
import numpy as np
from app.clients.token_vectors import SqliteTokenVectorStore
async def main():
    store = SqliteTokenVectorStore(Path(sys.argv[1]))
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        await store.put({uuid5(UUID(int=7), str(number)): np.full((20, 384), number % 100, np.int8)})
        print(number, flush=True)
    await store.aclose()
asyncio.run(main())
"""


def matrix(rows: int = 5, dimension: int = 8, *, seed: int = 0) -> TokenMatrix:
    return np.random.default_rng(seed).integers(-127, 128, size=(rows, dimension), dtype=np.int8)


def using(path: Path, body: Callable[[SqliteTokenVectorStore], Awaitable[None]]) -> None:
    async def story() -> None:
        store = SqliteTokenVectorStore(path)
        try:
            await body(store)
        finally:
            await store.aclose()

    run(story())


def test_what_was_put_comes_back_and_missing_ids_are_left_out(tmp_path: Path) -> None:
    first, second = uuid4(), uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({first: matrix(seed=1), second: matrix(rows=9, seed=2)})
        found = await store.get([second, uuid4(), first])
        assert set(found) == {first, second}
        np.testing.assert_array_equal(found[first], matrix(seed=1))
        np.testing.assert_array_equal(found[second], matrix(rows=9, seed=2))
        assert found[first].dtype == np.int8

    using(tmp_path / "new" / "vectors.sqlite", body)


def test_it_is_still_there_after_closing(tmp_path: Path) -> None:
    key = uuid4()

    async def write(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix()})

    async def read(store: SqliteTokenVectorStore) -> None:
        np.testing.assert_array_equal((await store.get([key]))[key], matrix())

    using(tmp_path / "vectors.sqlite", write)
    using(tmp_path / "vectors.sqlite", read)


def test_putting_again_replaces(tmp_path: Path) -> None:
    key = uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix(seed=1)})
        await store.put({key: matrix(rows=2, seed=2)})
        np.testing.assert_array_equal((await store.get([key]))[key], matrix(rows=2, seed=2))

    using(tmp_path / "vectors.sqlite", body)


def test_a_matrix_without_rows_is_kept_as_one(tmp_path: Path) -> None:
    key = uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({key: np.zeros((0, 384), np.int8)})
        assert (await store.get([key]))[key].shape == (0, 384)

    using(tmp_path / "vectors.sqlite", body)


def test_rows_that_are_not_contiguous_are_stored_in_their_order(tmp_path: Path) -> None:
    key = uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix(8, 8).T})
        np.testing.assert_array_equal((await store.get([key]))[key], matrix(8, 8).T)

    using(tmp_path / "vectors.sqlite", body)


def test_more_ids_than_one_statement_takes(tmp_path: Path) -> None:
    keys = [uuid5(NAMESPACE, str(number)) for number in range(1_001)]

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix(1, 4) for key in keys})
        assert set(await store.get(keys)) == set(keys)
        await store.delete(keys[1:])
        assert set(await store.get(keys)) == {keys[0]}

    using(tmp_path / "vectors.sqlite", body)


def test_nothing_to_do_opens_no_file(tmp_path: Path) -> None:
    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({})
        assert await store.get([]) == {}
        await store.delete([])
        assert await store.size_bytes() == 0

    using(tmp_path / "vectors.sqlite", body)
    assert not list(tmp_path.iterdir())


def test_deleting_gives_the_space_back(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    keys = [uuid5(NAMESPACE, str(number)) for number in range(100)]

    async def fill(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix(200, 384, seed=number) for number, key in enumerate(keys)})

    async def empty(store: SqliteTokenVectorStore) -> None:
        before = await store.size_bytes()
        assert before > 100 * 200 * 384
        await store.delete(keys[:90])
        assert path.stat().st_size < before / 4
        assert set(await store.get(keys)) == set(keys[90:])

    using(path, fill)
    using(path, empty)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((2, 3), np.float32), np.zeros(3, np.int8), np.zeros((3, 0), np.int8), np.zeros((1, 2, 3), np.int8)],
)
def test_what_is_no_token_matrix_is_refused_before_anything_is_written(tmp_path: Path, wrong: np.ndarray) -> None:
    good, bad = uuid4(), uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        with pytest.raises(InvalidInput, match=str(bad)):
            await store.put({good: matrix(), bad: wrong})
        assert await store.get([good]) == {}

    using(tmp_path / "vectors.sqlite", body)


def test_a_file_that_is_no_database_is_an_unavailable_store(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"this is not a database, and long enough to be read as one" * 50)

    async def body(store: SqliteTokenVectorStore) -> None:
        with pytest.raises(StoreUnavailable, match="not a database") as caught:
            await store.get([uuid4()])
        assert caught.value.cause == "bad_answer"

    using(path, body)


def test_a_folder_that_cannot_be_made_is_an_unavailable_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def body(store: SqliteTokenVectorStore) -> None:
        with pytest.raises(StoreUnavailable):
            await store.put({uuid4(): matrix()})

    using(tmp_path / "file" / "vectors.sqlite", body)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        store = SqliteTokenVectorStore(tmp_path / "vectors.sqlite")
        await store.put({uuid4(): matrix()})
        await store.aclose()
        await store.aclose()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.get([uuid4()])

    run(story())


def test_reading_does_not_wait_for_a_write_that_waits_for_another_process(tmp_path: Path) -> None:
    path, key, late = tmp_path / "vectors.sqlite", uuid4(), uuid4()

    async def body(store: SqliteTokenVectorStore) -> None:
        await store.put({key: matrix()})
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(store.put({late: matrix()}))
            await asyncio.sleep(0.05)
            assert set(await store.get([key, late])) == {key}
            assert not writing.done()
            other.execute("COMMIT")
        await writing
        assert set(await store.get([key, late])) == {key, late}

    using(path, body)


def test_what_was_acknowledged_survives_a_killed_process(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path, acknowledged = tmp_path / "vectors.sqlite", []
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "0", "100000"],
        cwd=pytestconfig.rootpath,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            acknowledged.append(int(line))
            if len(acknowledged) == 50:
                writer.kill()
                break
        acknowledged += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    assert writer.returncode == -signal.SIGKILL

    async def body(store: SqliteTokenVectorStore) -> None:
        found = await store.get([uuid5(NAMESPACE, str(number)) for number in acknowledged])
        assert len(found) == len(acknowledged) >= 50
        await store.put({uuid4(): matrix()})

    using(path, body)


def test_several_processes_may_make_and_write_one_file_at_once(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path = tmp_path / "vectors.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(path), str(first), str(first + 25)],
            cwd=pytestconfig.rootpath,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first in (0, 25, 50)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=30)
        assert writer.returncode == 0, errors

    async def body(store: SqliteTokenVectorStore) -> None:
        keys = [uuid5(NAMESPACE, str(number)) for number in range(75)]
        assert len(await store.get(keys)) == 75

    using(path, body)
