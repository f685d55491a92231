"""Measures the in-process embedder: load, memory, speed, and whether the event loop stays free.

    python -m tests.bench.bench_local_model [CORPUS.jsonl [QUERIES.jsonl]] [--threads 2]

Without a corpus the texts are the chunks of samples/. Takes the 16 texts whose token counts are nearest to 258. Not a
test: run it on an idle machine.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.clients.local_model.embedder import LocalE5Embedder
from app.domain.deadline import Deadline
from app.domain.documents import ChunkingOptions
from app.ingestion.chunking import chunk
from app.ingestion.parsers import parse

SAMPLES = Path(__file__).parents[2] / "samples"
PASSAGES, TOKENS = 16, 258
QUERIES = 60
PATIENCE_S = 600.0
LOAD = """
import asyncio, sys, time
from pathlib import Path
started = time.perf_counter()
from app.clients.local_model.embedder import LocalE5Embedder
async def main():
    embedder = await LocalE5Embedder.load(cache_dir=Path(sys.argv[1]))
    print(f"{time.perf_counter() - started:.2f}")
    print(Path("/proc/self/statm").read_text().split()[1] if Path("/proc/self/statm").exists() else 0)
    await embedder.aclose()
asyncio.run(main())
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("corpus", type=Path, nargs="?")
    arguments.add_argument("queries", type=Path, nargs="?")
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        report_load(cache, "first load (graph is built)")
        report_load(cache, "second load")
        asyncio.run(measure(Path(cache), given))
    say(f"peak RSS of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


def report_load(cache: str, what: str) -> None:
    """In a process of its own, with the imports in the time."""
    done = subprocess.run([sys.executable, "-c", LOAD, cache], check=True, capture_output=True, text=True)
    seconds, pages = done.stdout.split()
    say(f"{what}: {seconds} s, RSS {int(pages) * resource.getpagesize() // 1_000_000} MB")


async def measure(cache: Path, given: argparse.Namespace) -> None:
    embedder = await LocalE5Embedder.load(cache_dir=cache, threads=given.threads)
    corpus = texts_of(given.corpus) if given.corpus else sample_chunks()
    counts = dict(zip(corpus, embedder.count_tokens(corpus), strict=True))
    passages = sorted(corpus, key=lambda text: abs(counts[text] - TOKENS))[:PASSAGES]
    queries = (texts_of(given.queries) if given.queries else [text[:60] for text in corpus])[:QUERIES]
    mean = statistics.mean(counts[text] for text in passages)
    say(f"{len(passages)} passages of {mean:.0f} tokens, {len(queries)} queries, {given.threads} threads")
    for query in queries[:3]:
        await embedder.embed_query(query, Deadline.after(PATIENCE_S))
    report_latency("queries, idle", await query_times(embedder, queries))
    await report_passages(embedder, passages)
    busy = asyncio.create_task(embed_forever(embedder, passages))
    report_latency("queries, while passages are embedded", await query_times(embedder, queries, pause_s=0.05))
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    await embedder.aclose()


async def report_passages(embedder: LocalE5Embedder, passages: list[str]) -> None:
    watch = asyncio.create_task(largest_gap_s())
    await asyncio.sleep(0)
    started = time.perf_counter()
    vectors = await embedder.embed_passages(passages, Deadline.after(PATIENCE_S))
    seconds = time.perf_counter() - started
    watch.cancel()
    gap_s = await watch
    say(f"passages: {len(passages) / seconds:.2f}/s; longest gap of the event loop {gap_s * 1000:.1f} ms")
    stored = statistics.mean(matrix.nbytes for matrix in vectors.tokens or ())
    say(f"token vectors: {stored:.0f} bytes a passage")


async def query_times(embedder: LocalE5Embedder, queries: list[str], *, pause_s: float = 0.0) -> list[float]:
    times = []
    for query in queries:
        await asyncio.sleep(pause_s)
        started = time.perf_counter()
        await embedder.embed_query(query, Deadline.after(PATIENCE_S))
        times.append(time.perf_counter() - started)
    return times


async def embed_forever(embedder: LocalE5Embedder, passages: list[str]) -> None:
    while True:
        await embedder.embed_passages(passages, Deadline.after(PATIENCE_S))


async def largest_gap_s(step_s: float = 0.001) -> float:
    """Until cancelled; how much later than asked for a sleep ever came back."""
    largest = 0.0
    try:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(step_s)
            largest = max(largest, time.perf_counter() - started - step_s)
    except asyncio.CancelledError:
        return largest


def report_latency(what: str, times: list[float]) -> None:
    cuts = statistics.quantiles(times, n=20)
    say(f"{what}: p50 {statistics.median(times) * 1000:.1f} ms, p95 {cuts[-1] * 1000:.1f} ms")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def texts_of(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def sample_chunks() -> list[str]:
    """Texts of all chunks of the sample documents, as they are embedded."""
    texts = []
    for path in sorted(SAMPLES.glob("*.md")):
        document = parse(path.read_bytes(), source_name=path.name, media_type="text/markdown")
        texts += [one.text for one in chunk(document, ChunkingOptions(), count_tokens=None)]
    return texts


if __name__ == "__main__":
    main()
