"""The metadata database: whole transactions for writing, single statements for reading."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from sqlalchemy import URL, Select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import StoreUnavailable
from app.store.engine import is_sqlite, parse_url, prepare, writer_engine
from app.store.failures import starts_over, translated
from app.store.migrations.run import upgrade
from app.store.readers import Parameters, Reader, Rows, reader_for

T = TypeVar("T")
Transaction = Callable[[AsyncConnection], Awaitable[T]]

MAX_TRIES = 12


class Database:
    """One per process. `open` migrates; `aclose` waits for the transactions that are under way."""

    def __init__(self, *, url: URL, rng: random.Random) -> None:
        self._rng = rng
        self._writer: AsyncEngine = writer_engine(url)
        # SQLite has one writer: waiting for it here can be cancelled, waiting inside SQLite cannot.
        self._turn = asyncio.Lock() if is_sqlite(url) else None
        self._reader: Reader = reader_for(url, threads=2, name="read")
        self._search_reader: Reader = reader_for(url, threads=2, name="search")
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, url: str, *, rng: random.Random | None = None) -> "Database":
        """Opens `sqlite:///file` or `postgresql://…`, creating and migrating it first (once, however many start).

        Raises ConfigurationError (bad URL, database of a newer version) or StoreUnavailable.
        """
        parsed = parse_url(url)
        await prepare(parsed)
        database = cls(url=parsed, rng=rng or random.Random())  # noqa: S311 (jitter)
        try:
            await database.write(upgrade)
        except BaseException:
            await database.aclose()
            raise
        return database

    async def aclose(self) -> None:
        """Lets transactions under way end, then closes every connection and thread."""
        if self._running:
            await asyncio.wait(self._running)
        await self._reader.aclose()
        await self._search_reader.aclose()
        await self._writer.dispose()

    async def write(self, transaction: Transaction[T]) -> T:
        """Runs `transaction` in one database transaction and commits it.

        It may run several times (deadlock, lock, unique violation), so it must have no effect beside the database.
        A caller's cancellation does not reach it: a cancelled COMMIT would leave its outcome unknown.
        Raises StoreUnavailable when the database cannot be reached or stays locked.
        """
        task = asyncio.ensure_future(self._until_done(transaction))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def fetch(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None = None) -> Rows:
        """All rows of one statement. Raises StoreUnavailable."""
        return await self._reader.fetch(statement, parameters)

    async def fetch_for_search(self, statement: Select[*tuple[Any, ...]], parameters: Parameters | None = None) -> Rows:
        """As `fetch`, in threads of its own: a long listing never delays a search."""
        return await self._search_reader.fetch(statement, parameters)

    async def _until_done(self, transaction: Transaction[T]) -> T:
        for attempt in range(MAX_TRIES):
            try:
                return await self._once(transaction)
            except DBAPIError as error:
                if not starts_over(error):
                    raise translated(error) from error
                last = error
            except OSError as error:
                raise StoreUnavailable(f"the metadata database: {error}", cause="refused") from error
            await asyncio.sleep(self._rng.uniform(0, 0.005 * 2 ** min(attempt, 7)))
        raise StoreUnavailable(f"the metadata database is busy: {last.orig}", cause="overloaded") from last

    async def _once(self, transaction: Transaction[T]) -> T:
        async with AsyncExitStack() as stack:
            if self._turn is not None:
                await stack.enter_async_context(self._turn)
            connection = await stack.enter_async_context(self._writer.begin())
            return await transaction(connection)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Its waiter may have been cancelled; asyncio must not complain that nobody looked.
            task.exception()
