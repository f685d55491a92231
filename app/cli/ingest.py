"""`kroshka ingest PATH… --collection NAME`."""

from pathlib import Path

import click
from rich.console import Console

from app.cli.context import data_option, environment, print_json, run_async, url_options
from app.cli.doors import open_door
from app.cli.ingesting import Ingestion, Outcome, find_files
from app.cli.rendering import show_progress
from app.config.deployment import Deployment
from app.ingestion.parsers import supported_suffixes
from app.observability.logs import configure_logging

FAILED = ("refused", "failed", "cancelled")


@click.command("ingest")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--collection", required=True, help="Name of the collection; made if it is not there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@url_options
@data_option
def command(
    paths: tuple[Path, ...], collection: str, as_json: bool, url: str | None, key: str | None, data: Path | None
) -> int:
    """Index files and folders; unchanged files cost nothing."""
    configure_logging(level="warning")
    files = find_files(paths, supported_suffixes())
    if not files:
        raise click.UsageError(f"no file of a supported kind ({', '.join(supported_suffixes())}) in {paths[0]}")
    deployment = Deployment.from_environ(environment(data))

    async def work() -> tuple[str, list[Outcome]]:
        async with open_door(deployment, url=url, key=key, worker=True) as door:
            run = Ingestion(door=door, collection_id=await door.ensure_collection(collection), files=files)
            await show_progress(run.upload(), "uploading", unit="files")
            await show_progress(run.follow(), "indexing")
            return door.where, run.outcomes

    where, outcomes = run_async(work())
    if as_json:
        print_json({"collection": collection, "service": where, "documents": outcomes})
    else:
        _print(outcomes, collection, where)
    return 1 if any(outcome.status in FAILED for outcome in outcomes) else 0


def _print(outcomes: list[Outcome], collection: str, where: str) -> None:
    console = Console()
    for outcome in outcomes:
        detail = outcome.error or f"{outcome.chunks} chunks"
        console.print(f"{outcome.status:<10} {outcome.source_name}  ({detail})", highlight=False, markup=False)
    indexed = [outcome for outcome in outcomes if outcome.status == "indexed"]
    console.print(
        f"{len(outcomes)} files for «{collection}» ({where}): {len(indexed)} indexed, "
        f"{sum(outcome.chunks for outcome in indexed)} new chunks",
        highlight=False,
        markup=False,
    )
