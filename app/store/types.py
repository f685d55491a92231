"""Column types and the database's clock, written once for SQLite and PostgreSQL."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Float, bindparam
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

JsonValue = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A Python None is SQL NULL, never the JSON text `null`."""


class UtcDateTime(TypeDecorator[datetime]):
    """Aware times in UTC. SQLite drops an offset silently, so a naive value is refused on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value!r}")
        in_utc = value.astimezone(UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class DatabaseTime(FunctionElement[datetime]):
    """The database's own clock, `after` later: leases must not depend on the clocks of the workers' hosts."""

    type = UtcDateTime()
    name = "database_time"
    inherit_cache = True

    def __init__(self, after: timedelta = timedelta()) -> None:
        super().__init__(bindparam(None, after.total_seconds(), type_=Float(), unique=True))


@compiles(DatabaseTime, "sqlite")
def _sqlite_time(element: DatabaseTime, compiler: SQLCompiler, **kw: Any) -> str:
    # The same text form as the DateTime type writes, microseconds included, so that times compare as text.
    seconds = compiler.process(element.clauses, **kw)
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', {seconds})) || '000')"


@compiles(DatabaseTime, "postgresql")
def _postgresql_time(element: DatabaseTime, compiler: SQLCompiler, **kw: Any) -> str:
    # clock_timestamp, not now: a transaction that waited for a lock must not hand out a lease in the past.
    return f"(clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **kw)}))"


def database_time(after: timedelta = timedelta()) -> DatabaseTime:
    """SQL for the present moment plus `after`, by the database's clock."""
    return DatabaseTime(after)
