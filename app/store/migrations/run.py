"""Brings a database up to date, and writes new revision files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import JSON, Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.errors import ConfigurationError
from app.store.types import UtcDateTime

if TYPE_CHECKING:
    from alembic.autogenerate.api import AutogenContext
    from alembic.config import Config

HEAD = "0001"
"""The newest revision; kept here so that a start on an up-to-date database does not import alembic (0.2 s)."""

_ADVISORY_LOCK = 0x6B726F73686B61


async def upgrade(connection: AsyncConnection) -> None:
    """Applies what is missing, in the caller's transaction: of several processes the first one migrates.

    Raises ConfigurationError when the database belongs to a newer version of the service.
    """
    if connection.dialect.name == "postgresql":
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    await connection.run_sync(upgrade_connection)


def upgrade_connection(connection: Connection) -> None:
    if applied_revision(connection) == HEAD:
        return
    from alembic import command
    from alembic.util import CommandError

    try:
        command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        raise ConfigurationError(f"the database was written by another version of the service: {error}") from error


def applied_revision(connection: Connection) -> str | None:
    """The revision that the database is at; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def alembic_config(connection: Connection) -> "Config":
    """Configuration in code, as there is no alembic.ini in an installed package."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def render_type(kind: str, obj: Any, context: "AutogenContext") -> str | Literal[False]:
    """Our own column types in generated files."""
    if kind != "type":
        return False
    if isinstance(obj, UtcDateTime):
        context.imports.add("from app.store.types import UtcDateTime")
        return "UtcDateTime()"
    if isinstance(obj, JSON):
        context.imports.add("from app.store.types import JsonValue")
        return "JsonValue"
    return False
