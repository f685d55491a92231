"""`kroshka eval DIR`."""

import asyncio
import contextlib
import hashlib
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import click
import platformdirs
from rich.console import Console
from rich.table import Table

from app.bootstrap import Service, open_service
from app.cli.context import data_option, environment, print_json, run_async
from app.cli.doors import LocalDoor
from app.cli.ingesting import Ingestion, SourceFile
from app.cli.rendering import counting_bar, model_line, show_progress
from app.config.deployment import Deployment
from app.domain.errors import KroshkaError
from app.evaluation.datasets import Dataset, document_unit, load_dataset
from app.evaluation.load import SearchLoad
from app.evaluation.modes import Mode, parse_modes
from app.evaluation.report import (
    COLUMNS,
    EvaluationView,
    Indexing,
    LoadView,
    embedder_view,
    evaluation_view,
    remarks,
    reranker_view,
    table_rows,
)
from app.evaluation.runner import Conditions, ModeReport, evaluate
from app.observability.logs import configure_logging


@click.command("eval")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--modes", default="dense,lexical,hybrid,hybrid+rerank", show_default=True, help="Separated by commas.")
@click.option("--limit", type=click.IntRange(1), help="Ask only the first N judged questions.")
@click.option(
    "--queries-from",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the questions of a parallel set (same ids, another language).",
)
@click.option("--with-title", is_flag=True, help="Index the documents' titles above their texts.")
@click.option("--top-k", type=click.IntRange(10, 200), default=100, show_default=True, help="Hits per question.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@data_option
def command(
    folder: Path,
    modes: str,
    limit: int | None,
    queries_from: Path | None,
    with_title: bool,
    top_k: int,
    as_json: bool,
    data: Path | None,
) -> None:
    """Measure retrieval on a BEIR-style FOLDER (corpus.jsonl, queries.jsonl, qrels.tsv).

    The corpus is indexed once, in a data folder of its own; later runs search what is there.
    """
    configure_logging(level="warning")
    wanted = parse_modes(modes)
    dataset = load_dataset(folder, limit=limit, queries_from=queries_from)
    files = {document.source_name: document.body(with_title=with_title) for document in dataset.documents}
    deployment = Deployment.from_environ(environment(data or _own_folder(dataset.name, files)))
    view, reports = run_async(_evaluate(deployment, dataset, files, wanted, top_k=top_k))
    if as_json:
        print_json(view)
    else:
        _print(view, reports)


def _own_folder(name: str, files: dict[str, str]) -> Path:
    """One data folder for each corpus: an edited corpus is another one."""
    digest = hashlib.sha256("\0".join(f"{key}\0{text}" for key, text in files.items()).encode()).hexdigest()
    return Path(platformdirs.user_cache_path("kroshka", appauthor=False)) / "eval" / f"{name}-{digest[:12]}"


async def _evaluate(
    deployment: Deployment, dataset: Dataset, files: dict[str, str], modes: Sequence[Mode], *, top_k: int
) -> tuple[EvaluationView, list[ModeReport]]:
    # No cache of query vectors: a later mode would look faster than the first.
    async with open_service(deployment, worker=True, vector_cache=0) as service:
        collection_id = await LocalDoor(service=service).ensure_collection(dataset.name)
        conditions = Conditions(unit_of=document_unit, collection_ids=(collection_id,), top_k=top_k)
        async with _search_load(service, dataset, conditions) as load:
            indexing = await _index(service, collection_id, files)
        reports = []
        for mode in modes:
            with counting_bar(f"asking ({mode.name})") as advance:
                questions = dataset.questions
                reports.append(await evaluate(service.search, questions, mode, conditions, on_progress=advance))
            view = evaluation_view(
                dataset.name,
                reports,
                indexing=indexing,
                embedder=embedder_view(service.model),
                reranker=reranker_view(service.models.info),
                while_indexing=load.view() if indexing.index_s is not None else None,
            )
        return view, reports


@asynccontextmanager
async def _search_load(service: Service, dataset: Dataset, conditions: Conditions) -> AsyncIterator[SearchLoad]:
    """Searches a few times a second while the body runs: what users feel during an ingest."""
    load = SearchLoad(search=service.search, questions=dataset.questions, conditions=conditions)
    running = asyncio.create_task(load.run())
    try:
        yield load
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _index(service: Service, collection_id: UUID, files: dict[str, str]) -> Indexing:
    """The same way as every document: upload, job, worker."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kroshka-eval-") as folder:
        sources = [_written(Path(folder), name, text) for name, text in files.items()]
        run = Ingestion(door=LocalDoor(service=service), collection_id=collection_id, files=sources)
        await show_progress(run.upload(), "uploading", unit="files")
        await show_progress(run.follow(), "indexing")
    broken = [outcome for outcome in run.outcomes if outcome.status not in ("indexed", "unchanged")]
    if broken:
        raise KroshkaError(f"{len(broken)} documents could not be indexed; the first: {broken[0].error}")
    new = sum(outcome.chunks for outcome in run.outcomes if outcome.status == "indexed")
    return Indexing(
        documents=len(files),
        passages=sum(outcome.chunks for outcome in run.outcomes),
        index_s=time.perf_counter() - began if new else None,
        new_passages=new,
    )


def _written(folder: Path, name: str, text: str) -> SourceFile:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return SourceFile(path, name)


def _print(view: EvaluationView, reports: Sequence[ModeReport]) -> None:
    console = Console()
    console.print(model_line(view.embedder.id, view.embedder.weights_sha256), highlight=False, soft_wrap=True)
    console.print(f"reranker: {view.reranker.id if view.reranker else 'none'}", highlight=False, soft_wrap=True)
    console.print(f"{view.dataset}: {view.documents} documents, {view.passages} passages, {view.queries} questions")
    if view.passages_per_second is not None:
        console.print(f"indexed in {view.index_seconds} s: {view.passages_per_second} passages/s")
    if view.search_while_indexing is not None:
        console.print(_load_line(view.search_while_indexing))
    table = Table(*COLUMNS, title=f"{view.dataset}, {view.queries} questions")
    for row in table_rows(reports):
        table.add_row(*row)
    console.print(table)
    for sentence in remarks(reports):
        console.print(sentence)


def _load_line(load: LoadView) -> str:
    return f"searches meanwhile: {load.searches}, p50 {load.p50_ms} ms, p95 {load.p95_ms} ms"
