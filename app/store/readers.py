"""Single-statement reads, by the fastest way that each database offers."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from sqlalchemy import URL, Row, Select
from sqlalchemy.exc import DBAPIError

from app.domain.errors import StoreUnavailable
from app.store.engine import is_sqlite, postgresql_reader_engine, sqlite_reader_engine
from app.store.failures import translated

Rows = Sequence[Row[*tuple[Any, ...]]]
Parameters = Mapping[str, Any]


class Reader(Protocol):
    """Runs one statement and returns all of its rows. Raises StoreUnavailable."""

    async def fetch(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None = None) -> Rows: ...

    async def aclose(self) -> None: ...


class ThreadReader:
    """SQLite by a synchronous engine in its own threads; a statement sees what was committed when it began."""

    def __init__(self, *, url: URL, threads: int, name: str) -> None:
        self._engine = sqlite_reader_engine(url, threads=threads)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"kroshka-{name}")

    async def fetch(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None = None) -> Rows:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, self._fetch, statement, parameters)
        except RuntimeError as error:
            raise StoreUnavailable("the metadata database is closed", cause="refused") from error
        return await future

    def _fetch(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None) -> Rows:
        try:
            with self._engine.connect() as connection:
                return connection.execute(statement, parameters).all()
        except DBAPIError as error:
            raise translated(error) from error

    async def aclose(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()


class ServerReader:
    """PostgreSQL in AUTOCOMMIT."""

    def __init__(self, *, url: URL) -> None:
        self._engine = postgresql_reader_engine(url)

    async def fetch(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None = None) -> Rows:
        try:
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()
        except DBAPIError as error:
            raise translated(error) from error
        except OSError as error:
            raise StoreUnavailable(f"the metadata database: {error}", cause="refused") from error

    async def aclose(self) -> None:
        await self._engine.dispose()


def reader_for(url: URL, *, threads: int, name: str) -> Reader:
    """Threads for SQLite (`name` shows in a debugger), a pool for a server."""
    return ThreadReader(url=url, threads=threads, name=name) if is_sqlite(url) else ServerReader(url=url)
