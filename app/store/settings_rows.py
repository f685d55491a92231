"""Settings rows: what the platform and the workspaces override."""

from functools import partial

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.errors import PreconditionFailed
from app.store.database import Database
from app.store.tables import settings
from app.store.types import database_time


class SqlSettingsRows:
    """The SettingsRows port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def read(self, scope: str) -> tuple[dict[str, object], int]:
        """Overrides and version; ({}, 0) when there is no row."""
        rows = await self._database.fetch(select(settings).where(settings.c.scope == scope))
        return (rows[0].overrides, rows[0].version) if rows else ({}, 0)

    async def write(self, scope: str, overrides: dict[str, object], *, expected_version: int | None) -> int:
        """Replaces the row; returns its new version.

        None writes whatever is there, 0 only where nothing is. Raises PreconditionFailed.
        """
        return await self._database.write(
            partial(_write, scope=scope, overrides=overrides, expected_version=expected_version)
        )


async def _write(
    connection: AsyncConnection, *, scope: str, overrides: dict[str, object], expected_version: int | None
) -> int:
    locked = select(settings.c.version).where(settings.c.scope == scope).with_for_update()
    version: int = (await connection.execute(locked)).scalar() or 0
    if expected_version is not None and expected_version != version:
        raise PreconditionFailed(str(expected_version), str(version))
    values = {"overrides": overrides, "version": version + 1, "updated_at": database_time()}
    if version:
        await connection.execute(update(settings).where(settings.c.scope == scope).values(**values))
    else:
        await connection.execute(insert(settings).values(scope=scope, **values))
    return version + 1
