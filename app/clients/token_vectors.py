"""Token vectors of late interaction in a SQLite file of their own, beside the index and never in the catalog.

Measured: 84 kB a chunk of 214 tokens (384 bytes a token of its content, and 4 % of pages). What was put survives a
killed process. A power cut may lose the last transactions (`synchronous=NORMAL` in WAL mode never harms the file):
such chunks rank without late interaction until their vectors are made again. Vectors of two embedding models must
not share a file.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidInput, StoreUnavailable
from app.domain.vectors import TokenMatrix

T = TypeVar("T")

_BUSY_TIMEOUT_S = 5.0
_IDS_PER_STATEMENT = 200
_PAGE_BYTES = 16_384  # large pages suit large blobs
_PAGES_FREED_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS token_vectors (
    chunk_id BLOB NOT NULL PRIMARY KEY CHECK (length(chunk_id) = 16),
    dimension INTEGER NOT NULL CHECK (dimension > 0),
    vectors BLOB NOT NULL CHECK (length(vectors) % dimension = 0)
)
"""


class SqliteTokenVectorStore:
    """Reads and writes have a thread and a connection each, so a search does not wait for a write.

    Several processes may use one file. Every method raises StoreUnavailable when SQLite refuses.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is opened before the first call, which makes the file and its folder when they are missing."""
        self._path = path
        self._reader, self._writer = _Connection(path, "token-vectors-read"), _Connection(path, "token-vectors-write")

    async def put(self, matrices: Mapping[UUID, TokenMatrix]) -> None:
        """All of them or none; a matrix of an id that is there is replaced. InvalidInput for what is no TokenMatrix."""
        rows = [(key.bytes, _dimension(key, matrix), matrix.tobytes()) for key, matrix in matrices.items()]
        if rows:
            await self._writer.run(lambda connection: _insert(connection, rows))

    async def get(self, chunk_ids: Sequence[UUID]) -> dict[UUID, TokenMatrix]:
        """Those that exist, read-only."""
        return await self._reader.run(lambda connection: _select(connection, chunk_ids)) if chunk_ids else {}

    async def delete(self, chunk_ids: Sequence[UUID]) -> None:
        """Deletes those that exist and gives their pages back to the file system."""
        if chunk_ids:
            await self._writer.run(lambda connection: _delete(connection, chunk_ids))

    async def size_bytes(self) -> int:
        """On disk, with the write-ahead log; 0 when nothing was ever put."""
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return await asyncio.to_thread(lambda: sum(file.stat().st_size for file in files if file.exists()))

    async def aclose(self) -> None:
        """Waits for what was begun, then closes; may be called twice."""
        await asyncio.gather(self._reader.aclose(), self._writer.aclose())


class _Connection:
    """One SQLite connection in one thread."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._closed = path, False
        self._connection: sqlite3.Connection | None = None
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work`'s result, in the order of the calls."""
        if self._closed:
            raise StoreUnavailable("the token vectors have been closed", cause="refused")
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._translating, work)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
        await asyncio.to_thread(self._executor.shutdown)

    def _translating(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = _open(self._path)
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            cause = "timeout" if _is_locked(error) else "bad_answer"
            raise StoreUnavailable(f"token vectors in {self._path.name}: {error}", cause=cause) from error

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open(path: Path) -> sqlite3.Connection:
    """Two processes that make the file at once may meet a lock that SQLite does not wait for: try again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection)
        except sqlite3.Error as error:
            connection.close()
            if not _is_locked(error) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)
        else:
            return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Page size and vacuum mode are fixed by the first write, so they come before it; later they would need a lock."""
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 33554432")
    connection.execute(_SCHEMA)


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[bytes, int, bytes]]) -> None:
    with _transaction(connection):
        connection.executemany("INSERT OR REPLACE INTO token_vectors VALUES (?, ?, ?)", rows)


def _select(connection: sqlite3.Connection, chunk_ids: Sequence[UUID]) -> dict[UUID, TokenMatrix]:
    found = {}
    for part, marks in _parts(chunk_ids):
        statement = f"SELECT chunk_id, dimension, vectors FROM token_vectors WHERE chunk_id IN ({marks})"  # noqa: S608
        for key, dimension, vectors in connection.execute(statement, part):
            found[UUID(bytes=key)] = np.frombuffer(vectors, dtype=np.int8).reshape(-1, dimension)
    return found


def _delete(connection: sqlite3.Connection, chunk_ids: Sequence[UUID]) -> None:
    with _transaction(connection):
        for part, marks in _parts(chunk_ids):
            connection.execute(f"DELETE FROM token_vectors WHERE chunk_id IN ({marks})", part)  # noqa: S608
    _give_back_pages(connection)


def _give_back_pages(connection: sqlite3.Connection) -> None:
    """In small transactions, so that other processes can write in between; the checkpoint then cuts both files.

    A checkpoint that meets a reader does what it can, which is not an error: the next one does the rest.
    """
    free, before = _free_pages(connection), -1
    while free and free != before:
        connection.execute(f"PRAGMA incremental_vacuum({_PAGES_FREED_AT_ONCE})").fetchall()
        free, before = _free_pages(connection), free
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _parts(chunk_ids: Sequence[UUID]) -> Iterator[tuple[list[bytes], str]]:
    """Ids of one statement and its question marks: nothing of a caller's goes into the statement's text."""
    for start in range(0, len(chunk_ids), _IDS_PER_STATEMENT):
        part = [chunk_id.bytes for chunk_id in chunk_ids[start : start + _IDS_PER_STATEMENT]]
        yield part, ",".join("?" * len(part))


def _dimension(key: UUID, matrix: TokenMatrix) -> int:
    if matrix.dtype != np.int8 or matrix.ndim != 2 or not matrix.shape[1]:
        raise InvalidInput(f"/matrices/{key}", f"int8 rows are needed, not {matrix.dtype} of shape {matrix.shape}")
    return int(matrix.shape[1])


def _is_locked(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
