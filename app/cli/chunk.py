"""`kroshka chunk FILE`."""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from rich.console import Console
from rich.markup import escape

from app.cli.context import print_json
from app.domain.documents import Chunk, ChunkingOptions
from app.ingestion.chunking import STRATEGIES, chunk
from app.ingestion.chunking.lint import Finding, lint
from app.ingestion.media_types import sniff
from app.ingestion.parsers import parse

SNIPPET = 160
SNIFFED_BYTES = 8192


class ChunkView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chunk under the names that the API uses."""

    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    section_depths: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    heading_spans: tuple[tuple[int, int], ...]
    page: int | None
    weight: int
    chunk_strategy: str


class FileView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One file's chunks; `findings` is None without --lint."""

    source_name: str
    media_type: str
    chunks: list[ChunkView]
    findings: list[Finding] | None = None


@click.command("chunk")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--strategy", type=click.Choice(list(STRATEGIES)), default="structure_aware", show_default=True)
@click.option("--size", type=click.IntRange(100, 8000), default=900, show_default=True, help="Weighted characters.")
@click.option("--overlap", type=click.IntRange(0, 4000), default=120, show_default=True, help="Weighted characters.")
@click.option("--json", "as_json", is_flag=True, help="Print every chunk in full.")
@click.option("--lint", "check", is_flag=True, help="Check the chunks against the file; exit code 1 on a finding.")
def command(file: Path, strategy: str, size: int, overlap: int, as_json: bool, check: bool) -> int:
    """Show how a file is cut into passages. Sizes only: no embedding model is asked."""
    data = file.read_bytes()
    media_type = sniff(data[:SNIFFED_BYTES], file.name)
    document = parse(data, source_name=file.name, media_type=media_type)
    options = ChunkingOptions(strategy=strategy, size=size, overlap=overlap)
    chunks = chunk(document, options, count_tokens=None)
    findings = lint(document, chunks, options) if check else None
    if as_json:
        print_json(
            FileView(
                source_name=file.name,
                media_type=media_type,
                chunks=[_view(one) for one in chunks],
                findings=findings,
            )
        )
    else:
        _print(Console(), file.name, chunks, findings)
    return 1 if findings else 0


def _view(one: Chunk) -> ChunkView:
    return ChunkView(
        chunk_index=one.index,
        text=one.text,
        content_start=one.content_start,
        section_path=one.section_path,
        section_depths=one.section_depths,
        spans=one.spans,
        heading_spans=one.heading_spans,
        page=one.page,
        weight=one.weight,
        chunk_strategy=one.strategy,
    )


def _print(console: Console, name: str, chunks: Sequence[Chunk], findings: Sequence[Finding] | None) -> None:
    for one in chunks:
        breadcrumb = " › ".join((name, *one.section_path))
        where = ", ".join(f"{start}–{end}" for start, end in one.spans)
        snippet = " ".join(one.content.split())
        snippet = snippet if len(snippet) <= SNIPPET else snippet[: SNIPPET - 1].rstrip() + "…"
        console.print(f"[bold]{one.index}[/bold] [cyan]{escape(breadcrumb)}[/cyan]", highlight=False)
        console.print(f"  [dim]weight {one.weight}  source {where}[/dim]", highlight=False)
        console.print(f"  {escape(snippet)}", highlight=False)
    console.print(f"[dim]{len(chunks)} chunks[/dim]", highlight=False)
    for finding in findings or ():
        subject = "document" if finding.chunk is None else f"chunk {finding.chunk}"
        console.print(f"[red]{subject}[/red]: {escape(finding.message)}", highlight=False)
    if findings is not None and not findings:
        console.print("[green]lint: nothing found[/green]")
