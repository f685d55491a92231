"""`kroshka demo`: the whole way on the sample documents, with the embedded engine and model."""

from pathlib import Path

import click
import platformdirs
from rich.console import Console
from rich.markup import escape

from app.bootstrap import open_service
from app.cli.context import environment, print_json, run_async
from app.cli.demo_run import DemoReport, DemoSearch, run_demo
from app.cli.rendering import model_line, print_hits, times_line
from app.config.deployment import Deployment
from app.evaluation.report import GoldenView
from app.observability.logs import configure_logging


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Data folder. Default: `demo` in the platform's user data folder (KROSHKA_DATA is left alone).",
)
def command(as_json: bool, data: Path | None) -> None:
    """Index the sample documents, search them, and measure the golden questions. No server, no key, no GPU."""
    configure_logging(level="warning")
    folder = data or Path(platformdirs.user_data_path("kroshka", appauthor=False)) / "demo"
    deployment = Deployment.from_environ(environment(folder))

    async def work() -> DemoReport:
        async with open_service(deployment, worker=True) as service:
            return await run_demo(service)

    report = run_async(work())
    if as_json:
        print_json(report)
        return
    _print(Console(), report, folder)


def _print(console: Console, report: DemoReport, folder: Path) -> None:
    console.print(model_line(report.embedder.id, report.embedder.weights_sha256), highlight=False, soft_wrap=True)
    console.print(f"reranker: {report.reranker.id if report.reranker else 'none'}", highlight=False, soft_wrap=True)
    console.print(f"engine: {report.engine}  data: {folder}", highlight=False, soft_wrap=True)
    _print_documents(console, report)
    for search in report.searches:
        _print_search(console, search)
    _print_golden(console, report.golden)


def _print_documents(console: Console, report: DemoReport) -> None:
    for collection in report.collections:
        console.print(f"\n[bold]«{escape(collection.name)}»[/bold]", highlight=False, soft_wrap=True)
        for document in collection.documents:
            line = f"  {document.status:<10} {document.chunks:>3} chunks  {document.source_name}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    embedded = f"{report.embedded_chunks} embedded now" if report.embedded_chunks else "nothing new to embed"
    console.print(
        f"\n{report.chunks} chunks, {embedded} ({report.index_seconds:.1f} s)", highlight=False, soft_wrap=True
    )


def _print_search(console: Console, search: DemoSearch) -> None:
    console.print(f"\n[bold]? {escape(search.query)}[/bold]", highlight=False, soft_wrap=True)
    console.print("  before reranking:")
    print_hits(console, search.before_rerank, indent="    ", with_text=False)
    console.print("  hits:")
    print_hits(console, search.hits, indent="    ")
    for item in search.degraded:
        console.print(f"  [yellow]degraded[/yellow]: {item.stage} ({item.cause}, after {item.after_ms:.0f} ms)")
    console.print(f"  [dim]{times_line(search.timings_ms)}[/dim]", highlight=False, soft_wrap=True)


def _print_golden(console: Console, golden: GoldenView) -> None:
    figures = golden.figures
    console.print(
        f"\n[bold]golden questions[/bold] ({golden.queries}, {golden.mode}): "
        f"recall@1 {figures.recall_at_1:.3f}  success@1 {figures.success_at_1:.3f}  "
        f"recall@5 {figures.recall_at_5:.3f}  MRR {figures.mrr_at_10:.3f}  "
        f"p50 {figures.p50_ms:.0f} ms  p95 {figures.p95_ms:.0f} ms",
        highlight=False,
    )
    for kind in golden.kinds:
        console.print(
            f"  {kind.kind:<15} {kind.questions:>3} questions  recall@1 {kind.figures.recall_at_1:.3f}  "
            f"MRR {kind.figures.mrr_at_10:.3f}",
            highlight=False,
        )
    if golden.rejection:
        told = f"{golden.rejection.questions} questions that the documents do not answer: "
        aucs = ", ".join(f"{item.score} {item.auc:.2f}" for item in golden.rejection.separations)
        console.print(f"  {told}the best scores tell them apart with AUC {aucs}", highlight=False, soft_wrap=True)
