"""`kroshka migrate`: bring a database up to date without starting the service."""

import asyncio

from app.store.database import Database
from app.store.migrations.run import HEAD


def migrate(url: str) -> str:
    """Creates and migrates the database; returns the revision it is at. Raises ConfigurationError, StoreUnavailable."""
    asyncio.run(_migrate(url))
    return HEAD


async def _migrate(url: str) -> None:
    database = await Database.open(url)
    await database.aclose()
