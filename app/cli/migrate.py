"""`kroshka migrate`."""

from pathlib import Path

import click

from app.cli.context import data_option, environment
from app.config.deployment import Deployment


@click.command("migrate")
@data_option
def command(data: Path | None) -> None:
    """Bring the metadata database to this version's tables (the service does it at its start, too)."""
    from app.store.migrate import migrate

    deployment = Deployment.from_environ(environment(data))
    deployment.data_dir.mkdir(parents=True, exist_ok=True)
    click.echo(f"database is at revision {migrate(deployment.database_url)}")
