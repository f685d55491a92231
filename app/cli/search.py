"""`kroshka search QUERY`."""

from pathlib import Path

import click
from rich.console import Console

from app.cli.context import data_option, environment, print_json, run_async, url_options
from app.cli.doors import SearchWish, open_door
from app.cli.rendering import print_hits, print_result
from app.config.deployment import Deployment
from app.domain.search import SearchResult
from app.observability.logs import configure_logging


@click.command("search")
@click.argument("query")
@click.option("--collection", help="Search only this collection. Default: all.")
@click.option("--top-k", type=click.IntRange(1, 200), help="Number of hits.")
@click.option("--min-score", type=click.FloatRange(-1, 1), help="Cosine floor.")
@click.option("--rerank/--no-rerank", default=None, help="Default: as configured.")
@click.option(
    "--explain", is_flag=True, help="Also show the hits before reranking, and the configuration (with --json)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the API's answer.")
@url_options
@data_option
def command(
    query: str,
    collection: str | None,
    top_k: int | None,
    min_score: float | None,
    rerank: bool | None,
    explain: bool,
    as_json: bool,
    url: str | None,
    key: str | None,
    data: Path | None,
) -> None:
    """Find passages, each with its breadcrumb and every score."""
    configure_logging(level="warning")
    wish = SearchWish(
        text=query, collection=collection, top_k=top_k, min_score=min_score, rerank=rerank, explain=explain
    )
    deployment = Deployment.from_environ(environment(data))

    async def work() -> SearchResult:
        async with open_door(deployment, url=url, key=key, worker=False) as door:
            return await door.search(wish)

    result = run_async(work())
    if as_json:
        print_json(result)
        return
    console = Console()
    if explain and result.before_rerank:
        console.print("Before reranking:")
        print_hits(console, result.before_rerank, indent="  ")
        console.print("After:")
    print_result(console, result)
