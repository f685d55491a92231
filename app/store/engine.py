"""Engines: how the database is opened, on SQLite and on PostgreSQL."""

import asyncio
import sqlite3
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.domain.errors import ConfigurationError, StoreUnavailable

BUSY_TIMEOUT_MS = 2_000
"""How long SQLite waits for another process; waiting inside this process is done by an asyncio lock."""

READ_MMAP_BYTES = 1 << 30
"""Memory-mapped reads: halves the time of the search's two statements at 100,000 chunks."""


def parse_url(url: str) -> URL:
    """`sqlite:///path` or `postgresql://…`, with our driver filled in. Raises ConfigurationError."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError("DATABASE_URL is not a database URL; sqlite:///file or postgresql://…") from error
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise ConfigurationError("DATABASE_URL: SQLite needs a file, several connections share it")
        return parsed.set(drivername="sqlite+aiosqlite")
    if parsed.get_backend_name() == "postgresql":
        if find_spec("asyncpg") is None:
            raise ConfigurationError("DATABASE_URL: PostgreSQL needs the package asyncpg, which is not installed")
        return parsed.set(drivername="postgresql+asyncpg")
    raise ConfigurationError(f"DATABASE_URL: {parsed.get_backend_name()} is not supported; sqlite or postgresql")


def is_sqlite(url: URL) -> bool:
    """Whether the database is a file of this host."""
    return url.get_backend_name() == "sqlite"


async def prepare(url: URL) -> None:
    """Creates SQLite's folder and file in WAL mode; nothing to do for a server."""
    if is_sqlite(url):
        await asyncio.to_thread(_prepare_file, Path(str(url.database)))


def _prepare_file(path: Path, *, patience_s: float = 30.0) -> None:
    # Switching to WAL does not honour busy_timeout, and several processes may open a new folder at once.
    path.parent.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + patience_s
    while True:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up_at:
                raise StoreUnavailable(f"{path.name}: {error}", cause="overloaded") from error
            time.sleep(0.01)
        finally:
            connection.close()


def writer_engine(url: URL, *, pool_size: int = 10) -> AsyncEngine:
    """For transactions that write. On SQLite one connection, and each transaction begins IMMEDIATE."""
    if not is_sqlite(url):
        return create_async_engine(url, pool_size=pool_size, pool_pre_ping=True, **_json())
    engine = create_async_engine(url, pool_size=1, max_overflow=0, **_json())
    _set_pragmas(
        engine.sync_engine,
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "temp_store=MEMORY",
    )
    event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def sqlite_reader_engine(url: URL, *, threads: int) -> Engine:
    """Synchronous and read-only, one connection a thread: three times faster than a hop into aiosqlite's thread."""
    engine = create_engine(url.set(drivername="sqlite"), pool_size=threads, max_overflow=0, **_json())
    _set_pragmas(engine, f"busy_timeout={BUSY_TIMEOUT_MS}", f"mmap_size={READ_MMAP_BYTES}", "query_only=ON")
    return engine


def postgresql_reader_engine(url: URL, *, pool_size: int = 10) -> AsyncEngine:
    """Single statements without BEGIN and COMMIT round trips."""
    return create_async_engine(url, pool_size=pool_size, pool_pre_ping=True, isolation_level="AUTOCOMMIT", **_json())


def _set_pragmas(engine: Engine, *pragmas: str) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        # The driver must not begin transactions by itself: it would begin them deferred.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A deferred transaction that reads first and writes then fails at once when somebody wrote in between.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _json() -> dict[str, Any]:
    return {"json_serializer": _to_json, "json_deserializer": msgspec.json.decode}


def _to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()
