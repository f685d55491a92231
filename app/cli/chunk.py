"""`kroshka chunk FILE`."""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from rich.console import Console
from rich.markup import escape

from app.cli.context import print_json
from app.cli.rendering import snippet, trail
from app.clients.local_model.counting import PassageCounter
from app.domain.documents import Chunk, ChunkingOptions
from app.ingestion.chunking import STRATEGIES, chunk
from app.ingestion.chunking.lint import Finding, lint
from app.ingestion.media_types import sniff
from app.ingestion.parsers import parse

SNIFFED_BYTES = 8192


class ChunkView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chunk as `--json` prints it. `span` reaches from the first to the last character, `spans` are its parts."""

    chunk_index: int
    text: str
    content_start: int
    section_path: tuple[str, ...]
    span: tuple[int, int]
    spans: tuple[tuple[int, int], ...]
    page: int | None
    weight: int
    tokens: int | None
    strategy: str


@click.command("chunk")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--strategy", type=click.Choice(list(STRATEGIES)), default="structure_aware", show_default=True)
@click.option("--size", type=click.IntRange(100, 8000), default=900, show_default=True, help="Weighted characters.")
@click.option("--overlap", type=click.IntRange(0, 4000), default=120, show_default=True, help="Weighted characters.")
@click.option("--no-model", is_flag=True, help="Cut by characters alone, not at the embedding model's token limit too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line: a chunk (with --lint a finding).")
@click.option("--lint", "check", is_flag=True, help="Check the chunks against the file; exit code 1 on a finding.")
def command(file: Path, strategy: str, size: int, overlap: int, no_model: bool, as_json: bool, check: bool) -> int:
    """Show how a file is cut into passages: exactly as it would be indexed with the embedded model."""
    data = file.read_bytes()
    document = parse(data, source_name=file.name, media_type=sniff(data[:SNIFFED_BYTES], file.name))
    counter = None if no_model else PassageCounter.load()
    options = ChunkingOptions(
        strategy=strategy, size=size, overlap=overlap, max_tokens=counter.max_tokens if counter else None
    )
    count_tokens = counter.count_tokens if counter else None
    chunks = chunk(document, options, count_tokens=count_tokens)
    findings = lint(document, chunks, options) if check else None
    if not as_json:
        _print(Console(), file.name, chunks, findings)
    elif findings is not None:
        _print_lines(findings)
    else:
        tokens = count_tokens([one.text for one in chunks]) if count_tokens else [None] * len(chunks)
        _print_lines([_view(one, number) for one, number in zip(chunks, tokens, strict=True)])
    return 1 if findings else 0


def _print_lines(entries: Sequence[ChunkView | Finding]) -> None:
    for entry in entries:
        print_json(entry)


def _view(one: Chunk, tokens: int | None) -> ChunkView:
    return ChunkView(
        chunk_index=one.index,
        text=one.text,
        content_start=one.content_start,
        section_path=one.section_path,
        span=(one.spans[0][0], one.spans[-1][1]),
        spans=one.spans,
        page=one.page,
        weight=one.weight,
        tokens=tokens,
        strategy=one.strategy,
    )


def _print(console: Console, name: str, chunks: Sequence[Chunk], findings: Sequence[Finding] | None) -> None:
    for one in chunks:
        breadcrumb = trail(name, one.section_path)
        where = ", ".join(f"{start}–{end}" for start, end in one.spans)
        console.print(f"[bold]{one.index}[/bold] [cyan]{escape(breadcrumb)}[/cyan]", highlight=False, soft_wrap=True)
        console.print(f"  [dim]weight {one.weight}  source {where}[/dim]", highlight=False)
        console.print(f"  {escape(snippet(one.content))}", highlight=False, soft_wrap=True)
    console.print(f"[dim]{len(chunks)} chunks[/dim]", highlight=False)
    for finding in findings or ():
        subject = "document" if finding.chunk is None else f"chunk {finding.chunk}"
        console.print(f"[red]{subject}[/red]: {escape(finding.message)}", highlight=False)
    if findings is not None and not findings:
        console.print("[green]lint: nothing found[/green]")
