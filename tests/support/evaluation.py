"""Files, hits and a search that answers by heart, for tests of the evaluation room."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from app.domain.search import Degradation, Hit, Ranks, Scores, SearchQuery, SearchResult

NAMES = UUID("3f0a3f0e-6c61-5b2b-9d0a-6b726f73686b")


def hit(
    source_name: str,
    section: Sequence[str] = (),
    *,
    index: int = 0,
    cosine: float | None = None,
    lexical: float | None = None,
    rerank: float | None = None,
) -> Hit:
    return Hit(
        chunk_id=uuid5(NAMES, f"{source_name}/{section}/{index}"),
        document_id=uuid5(NAMES, source_name),
        collection_id=NAMES,
        source_name=source_name,
        chunk_index=index,
        text="text",
        content_start=0,
        section_path=tuple(section),
        page=None,
        span=(0, 4),
        relevance=None,
        relevance_source=None,
        reranked=rerank is not None,
        scores=Scores(cosine=cosine, lexical=lexical, rerank=rerank),
        ranks=Ranks(),
    )


class ScriptedSearch:
    """Gives each text the hits written down for it, and keeps the queries that it was asked."""

    def __init__(
        self,
        hits: Mapping[str, Sequence[Hit]],
        *,
        degraded: Mapping[str, Sequence[Degradation]] | None = None,
        timings_ms: Mapping[str, float] | None = None,
    ) -> None:
        self._hits, self._degraded, self._timings_ms = hits, degraded or {}, timings_ms or {}
        self.queries: list[SearchQuery] = []

    async def search(self, query: SearchQuery) -> SearchResult:
        self.queries.append(query)
        hits = tuple(self._hits.get(query.text, ()))
        return SearchResult(
            outcome="hits" if hits else "no_results",
            hits=hits,
            degraded=tuple(self._degraded.get(query.text, ())),
            timings_ms=dict(self._timings_ms),
        )


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_dataset(
    folder: Path,
    *,
    documents: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    qrels: Iterable[tuple[str, str, int]],
    header: bool = True,
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "corpus.jsonl", documents)
    write_jsonl(folder / "queries.jsonl", queries)
    lines = ["query-id\tcorpus-id\tscore"] if header else []
    lines += [f"{query}\t{document}\t{grade}" for query, document, grade in qrels]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
