"""Opening, migrating, writing and reading."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert, select, text
from sqlalchemy.exc import StatementError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.errors import ConfigurationError, StoreUnavailable
from app.store import check_migrations
from app.store.database import Database
from app.store.migrate import migrate
from app.store.migrations.run import HEAD
from app.store.tables import settings, workspace
from app.store.types import database_time
from tests.support.aio import run


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/kroshka.db"


def a_workspace(number: int) -> dict[str, object]:
    import uuid

    return {"id": uuid.UUID(int=number), "name": str(number), "epoch": 0, "created_at": database_time()}


async def add_workspace(connection: AsyncConnection, number: int = 1) -> None:
    await connection.execute(insert(workspace).values(**a_workspace(number)))


async def workspaces(database: Database) -> int:
    return len(await database.fetch(select(workspace.c.id)))


def test_migrations_and_tables_agree() -> None:
    assert check_migrations.main() == 0


def test_migrations_can_be_taken_back(tmp_path: Path) -> None:
    from alembic import command

    from app.store.migrations.run import alembic_config, upgrade_connection

    engine = create_engine(url_in(tmp_path))
    with engine.begin() as connection:
        upgrade_connection(connection)
        command.downgrade(alembic_config(connection), "base")
        tables = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
    engine.dispose()
    assert tables == ["alembic_version"]


def test_migrate_creates_the_folder_and_says_the_revision(tmp_path: Path) -> None:
    assert migrate(url_in(tmp_path / "new" / "folder")) == HEAD
    assert migrate(url_in(tmp_path / "new" / "folder")) == HEAD


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    migrate(url_in(tmp_path))
    engine = create_engine(url_in(tmp_path))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigurationError, match="another version"):
        migrate(url_in(tmp_path))


def test_several_processes_on_a_new_folder_migrate_once(tmp_path: Path) -> None:
    script = f"from app.store.migrate import migrate; migrate({url_in(tmp_path)!r})"
    started = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(4)]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors.decode()) == (0, "")


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://", "sqlite:///:memory:", "nonsense"])
def test_a_url_that_cannot_work_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        run(Database.open(url))


def test_a_url_may_name_the_driver(tmp_path: Path) -> None:
    assert migrate(f"sqlite+aiosqlite:///{tmp_path}/kroshka.db") == HEAD


def test_sqlite_is_opened_as_the_design_says(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))

        async def pragmas(connection: AsyncConnection) -> dict[str, object]:
            names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            return {name: (await connection.execute(text(f"PRAGMA {name}"))).scalar() for name in names}

        found = await database.write(pragmas)
        assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 2_000}
        await database.aclose()

    run(story())


def test_what_a_transaction_raises_takes_its_writes_back(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))

        async def fails(connection: AsyncConnection) -> None:
            await add_workspace(connection)
            raise LookupError("on purpose")

        with pytest.raises(LookupError):
            await database.write(fails)
        assert await workspaces(database) == 0
        await database.aclose()

    run(story())


def test_a_unique_violation_runs_the_whole_transaction_again(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        await database.write(add_workspace)
        tries = []

        async def collides_once(connection: AsyncConnection) -> None:
            tries.append(1)
            await add_workspace(connection, number=10 + len(tries))
            await add_workspace(connection, number=len(tries))

        await database.write(collides_once)
        assert len(tries) == 2
        assert await workspaces(database) == 3, "nothing of the first try stayed"
        await database.aclose()

    run(story())


def test_a_transaction_that_always_collides_ends(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        await database.write(add_workspace)
        with pytest.raises(StoreUnavailable, match="busy"):
            await database.write(add_workspace)
        await database.aclose()

    run(story(), timeout_s=60)


def test_writers_of_two_processes_take_turns(tmp_path: Path) -> None:
    async def story() -> None:
        one, two = await Database.open(url_in(tmp_path)), await Database.open(url_in(tmp_path))
        writes = [
            database.write(lambda connection, n=number: add_workspace(connection, n))  # type: ignore[misc]
            for number in range(100)
            for database in ((one, two)[number % 2],)
        ]
        await asyncio.gather(*writes)
        assert await workspaces(one) == await workspaces(two) == 100
        await one.aclose()
        await two.aclose()

    run(story())


def test_a_cancelled_caller_does_not_tear_a_transaction(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        inside, go_on = asyncio.Event(), asyncio.Event()

        async def slow(connection: AsyncConnection) -> None:
            await add_workspace(connection)
            inside.set()
            await go_on.wait()

        caller = asyncio.ensure_future(database.write(slow))
        await inside.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        go_on.set()
        await database.write(lambda connection: add_workspace(connection, 2))
        assert await workspaces(database) == 2
        await database.aclose()

    run(story())


def test_closing_waits_for_transactions_under_way(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        write = asyncio.ensure_future(database.write(add_workspace))
        await asyncio.sleep(0)
        await database.aclose()
        await write
        reopened = await Database.open(url_in(tmp_path))
        assert await workspaces(reopened) == 1
        await reopened.aclose()

    run(story())


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        await database.aclose()
        with pytest.raises(StoreUnavailable, match="closed"):
            await workspaces(database)

    run(story())


def test_a_time_without_a_zone_is_refused_and_other_zones_become_utc(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))

        async def write(moment: datetime) -> None:
            row = {"scope": moment.isoformat(), "overrides": {}, "version": 1, "updated_at": moment}

            async def transaction(connection: AsyncConnection) -> None:
                await connection.execute(insert(settings).values(**row))

            await database.write(transaction)

        with pytest.raises(StatementError, match="without a zone"):
            await write(datetime(2024, 1, 1, 12))  # noqa: DTZ001 (that is the point)
        await write(datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=3))))
        (row,) = await database.fetch(select(settings))
        assert row.updated_at == datetime(2024, 1, 1, 9, tzinfo=UTC)
        assert row.updated_at.utcoffset() == timedelta()
        await database.aclose()

    run(story())


def test_the_databases_clock_adds_and_subtracts(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(url_in(tmp_path))
        now, later, earlier = (
            await database.fetch(
                select(database_time(), database_time(timedelta(minutes=1.5)), database_time(timedelta(hours=-1)))
            )
        )[0]
        assert abs(now - datetime.now(UTC)) < timedelta(seconds=30)
        assert later - now == timedelta(seconds=90)
        assert earlier - now == timedelta(hours=-1)
        await database.aclose()

    run(story())
