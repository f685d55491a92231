"""Hits and progress for people."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.ingesting import Progress as IngestProgress
from app.domain.search import Hit, SearchResult

SNIPPET = 160


def breadcrumb(hit: Hit) -> str:
    """`Регламент.md › 2. Первичная диагностика`."""
    return trail(hit.source_name, hit.section_path)


def trail(source_name: str, section_path: Sequence[str]) -> str:
    """File and headings as one line."""
    return " › ".join((source_name, *section_path))


def scores_line(hit: Hit) -> str:
    """Every score that the hit earned, by name."""
    scores = {name: getattr(hit.scores, name) for name in ("rerank", "fused", "cosine", "lexical")}
    return "  ".join(f"{name} {value:.4f}" for name, value in scores.items() if value is not None)


def snippet(content: str) -> str:
    """The beginning of a passage's content, on one line."""
    text = " ".join(content.split())
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1].rstrip() + "…"


def print_hits(console: Console, hits: Sequence[Hit], *, indent: str = "  ", with_text: bool = True) -> None:
    for number, hit in enumerate(hits, start=1):
        lines = [f"[bold]{number}.[/bold] [cyan]{escape(breadcrumb(hit))}[/cyan]", f"   [dim]{scores_line(hit)}[/dim]"]
        for line in [*lines, f"   {escape(snippet(hit.text[hit.content_start :]))}"] if with_text else lines:
            # Never wrapped by us: what is piped into a file keeps one line a fact.
            console.print(f"{indent}{line}", highlight=False, soft_wrap=True)


def times_line(timings_ms: Mapping[str, float]) -> str:
    """Stage times in order of their stages."""
    return "  ".join(f"{name} {ms:.1f} ms" for name, ms in timings_ms.items())


def print_result(console: Console, result: SearchResult) -> None:
    """Hits, what was missing, and how long each stage took."""
    if not result.hits:
        console.print(f"No hits: {result.outcome}")
    print_hits(console, result.hits, indent="")
    for item in result.degraded:
        console.print(f"[yellow]degraded[/yellow]: {item.stage} ({item.cause}, after {item.after_ms:.0f} ms)")
    if result.notes:
        console.print(f"[dim]notes: {', '.join(result.notes)}[/dim]")
    console.print(f"[dim]{times_line(result.timings_ms)}[/dim]", highlight=False)


async def show_progress(stream: AsyncIterator[IngestProgress], title: str, *, unit: str = "chunks") -> None:
    """A bar on standard error that counts `chunks` or `files`; none at all when there is nothing to wait for."""
    with _bar(unit) as bar:
        task = bar.add_task(title, total=None, visible=False)
        async for state in stream:
            done, total = state.chunks_done, state.chunks_total
            if unit == "files":
                done, total = state.files_done, state.files_total
            text = f"{title} {state.files_done}/{state.files_total} files" if unit == "chunks" else title
            bar.update(task, description=text, completed=done, total=total or None, visible=True)


@contextmanager
def counting_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; the callable takes how many are done and how many there are."""
    with _bar("questions") as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(unit: str) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(file=sys.stderr))


def model_line(model_id: str, weights_sha256: str | None) -> str:
    """Which model answered, so that figures can be compared with others."""
    weights = f"sha256 {weights_sha256}" if weights_sha256 else "none"
    return f"model: {model_id}  weights: {weights}"
