"""Alembic's entry: migrations run on the connection that the caller opened, inside its transaction."""

from alembic import context

from app.store.migrations.run import render_type
from app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter a table in place: alembic copies it.
    render_as_batch=True,
    compare_type=True,
    render_item=render_type,
)
with context.begin_transaction():
    context.run_migrations()
