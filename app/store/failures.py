"""What a database error means: start over, unavailable, or a mistake of ours."""

import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from app.domain.errors import StoreUnavailable

_SQLITE_AGAIN = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})
_SQLITE_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_POSTGRESQL_AGAIN = frozenset({"23505", "40P01", "40001"})


def starts_over(error: DBAPIError) -> bool:
    """True for a unique violation, a deadlock, a serialisation failure and a lock: run the transaction again."""
    original = error.orig
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", 0)
        # Extended codes keep the primary one in their lowest byte.
        return code in _SQLITE_AGAIN or code & 0xFF in _SQLITE_LOCKED
    return _sqlstate(original) in _POSTGRESQL_AGAIN


def translated(error: DBAPIError) -> Exception:
    """StoreUnavailable for what may pass; anything else is a mistake of ours and stays what it is."""
    if error.connection_invalidated or isinstance(error, InterfaceError | OperationalError):
        return StoreUnavailable(f"the metadata database: {error.orig}", cause=_cause(error))
    return error


def _cause(error: DBAPIError) -> str:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code in _SQLITE_LOCKED:
        return "overloaded"
    return "reset" if error.connection_invalidated else "refused"


def _sqlstate(original: BaseException | None) -> str | None:
    state = getattr(original, "sqlstate", None) or getattr(original.__cause__ if original else None, "sqlstate", None)
    return str(state) if state else None
