"""`python -m app.store.check_migrations`: exit 1 when the tables in code and the migrations differ."""

import sys
import tempfile
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from app.store.migrations.run import HEAD, alembic_config, upgrade_connection
from app.store.tables import metadata


def differences(connection: Connection) -> list[str]:
    """What autogenerate would write after all migrations ran on this empty database; empty when they agree."""
    upgrade_connection(connection)
    found = [str(change) for change in compare_metadata(_context(connection), metadata)]
    head = ScriptDirectory.from_config(alembic_config(connection)).get_current_head()
    if head != HEAD:
        found.append(f"app/store/migrations/run.py says HEAD is {HEAD}, the newest file says {head}")
    return found


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"compare_type": True, "render_as_batch": True})


def main() -> int:
    """Runs on a fresh SQLite file; prints the differences."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'check.db'}")
        with engine.begin() as connection:
            found = differences(connection)
        engine.dispose()
    for line in found:
        sys.stderr.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
