"""Settings rows with optimistic concurrency."""

import asyncio
from pathlib import Path

import pytest

from app.domain.errors import PreconditionFailed
from app.store.database import Database
from app.store.settings_rows import SqlSettingsRows
from tests.support.aio import run


def test_a_row_is_replaced_only_by_who_has_read_it(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(f"sqlite:///{tmp_path}/k.db")
        rows = SqlSettingsRows(database=database)
        assert await rows.read("w") == ({}, 0)
        assert await rows.write("w", {"searchTopK": 5}, expected_version=0) == 1
        with pytest.raises(PreconditionFailed):
            await rows.write("w", {}, expected_version=0)
        assert await rows.write("w", {"minScore": None}, expected_version=1) == 2
        assert await rows.write("w", {"chunkSize": 500}, expected_version=None) == 3
        assert await rows.read("w") == ({"chunkSize": 500}, 3)
        assert await rows.read("__platform__") == ({}, 0)
        await database.aclose()

    run(story())


def test_of_two_first_writers_one_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(f"sqlite:///{tmp_path}/k.db")
        rows = SqlSettingsRows(database=database)
        writes = (rows.write("w", {"searchTopK": n}, expected_version=0) for n in (1, 2))
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert sorted(map(str, map(type, results))) == sorted(map(str, (int, PreconditionFailed)))
        await database.aclose()

    run(story())
