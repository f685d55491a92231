"""Evaluations as people and programs read them: the JSON of `kroshka eval --json`, and rows for a table. Pure."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from app.domain.errors import InvalidInput
from app.domain.search import RerankerInfo
from app.domain.vectors import EmbeddingModel
from app.evaluation.golden import KindFigures
from app.evaluation.measures import FIGURE_NAMES
from app.evaluation.rejection import Rejection
from app.evaluation.runner import DegradedCount, ModeReport, StageTime

COLUMNS = ("mode", "recall@1", "recall@5", "MRR@10", "nDCG@10", "p50 ms", "p95 ms")
DIGITS = 4  # of a measure: one question of a thousand is visible

_NAMES = FIGURE_NAMES | {
    "p50_ms": "p50Ms",
    "p95_ms": "p95Ms",
    "no_hits": "noHits",
    "rerank_pool": "rerankPool",
    "top_k": "topK",
}


class ModeView(Struct, frozen=True, kw_only=True, rename=_NAMES):
    """A mode's measures (0..1), wall times of a search in milliseconds, and counts of answers."""

    recall_at_1: float
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    success_at_1: float
    mrr_at_10: float
    ndcg_at_10: float
    p50_ms: float
    p95_ms: float
    top_k: int
    rerank_pool: int
    reranked: int
    degraded: int
    degradations: tuple[DegradedCount, ...]
    no_hits: int
    stages: tuple[StageTime, ...]


class ModelView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A model that took part, by its id and the hash of its weights where it has any of its own."""

    id: str
    weights_sha256: str | None = None


def embedder_view(model: EmbeddingModel) -> ModelView:
    """The embedding model by its key, which changes with everything that changes its vectors."""
    return ModelView(id=model.key, weights_sha256=model.weights_sha256)


def reranker_view(info: RerankerInfo | None) -> ModelView | None:
    """The reranker by dialect and model; None where there is none."""
    return ModelView(id=f"{info.dialect}:{info.model}") if info else None


class Indexing(Struct, frozen=True, kw_only=True):
    """How the corpus came into the index. `passages` are chunks; `index_s` None when all of it was there already.

    `new_passages` are those that this run embedded; None means all.
    """

    documents: int
    passages: int
    index_s: float | None = None
    new_passages: int | None = None

    @property
    def passages_per_s(self) -> float | None:
        embedded = self.passages if self.new_passages is None else self.new_passages
        return embedded / self.index_s if self.index_s else None


class LoadView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Searches that were answered while the corpus was being indexed; wall times in milliseconds."""

    searches: int
    p50_ms: float
    p95_ms: float


class EvaluationView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What `kroshka eval --json` prints. `modes` by name, in the order in which they were run."""

    dataset: str
    queries: int
    documents: int
    passages: int
    index_seconds: float | None
    passages_per_second: float | None
    search_while_indexing: LoadView | None
    embedder: ModelView
    reranker: ModelView | None
    modes: dict[str, ModeView]


class GoldenView(Struct, frozen=True, kw_only=True, rename="camel"):
    """The golden set's figures in one mode, by kind of question too, and what became of questions without an answer."""

    mode: str
    queries: int
    figures: ModeView
    kinds: tuple[KindFigures, ...]
    rejection: Rejection | None


def mode_view(report: ModeReport) -> ModeView:
    """Measures with four decimals, times with one."""
    return ModeView(
        **asdict(report.figures.rounded(DIGITS)),
        p50_ms=round(report.p50_ms, 1),
        p95_ms=round(report.p95_ms, 1),
        top_k=report.top_k,
        rerank_pool=report.rerank_pool,
        reranked=report.reranked,
        degraded=report.degraded,
        degradations=report.degradations,
        no_hits=report.no_hits,
        stages=report.stages,
    )


def evaluation_view(
    dataset: str,
    reports: Sequence[ModeReport],
    *,
    indexing: Indexing,
    embedder: ModelView,
    reranker: ModelView | None,
    while_indexing: LoadView | None = None,
) -> EvaluationView:
    """All modes over one data set. Raises InvalidInput when no mode was run."""
    if not reports:
        raise InvalidInput("modes", "at least one mode is needed", limit=1)
    speed = indexing.passages_per_s
    return EvaluationView(
        dataset=dataset,
        queries=reports[0].questions,
        documents=indexing.documents,
        passages=indexing.passages,
        index_seconds=None if indexing.index_s is None else round(indexing.index_s, 1),
        passages_per_second=None if speed is None else round(speed, 2),
        search_while_indexing=while_indexing,
        embedder=embedder,
        reranker=reranker,
        modes={report.mode.name: mode_view(report) for report in reports},
    )


def golden_view(report: ModeReport, kinds: Sequence[KindFigures], rejection: Rejection | None) -> GoldenView:
    return GoldenView(
        mode=report.mode.name,
        queries=report.questions,
        figures=mode_view(report),
        kinds=tuple(replace(kind, figures=kind.figures.rounded(DIGITS)) for kind in kinds),
        rejection=rejection,
    )


def table_rows(reports: Sequence[ModeReport]) -> list[tuple[str, ...]]:
    """One row a mode, a cell for each of COLUMNS."""
    return [
        (
            report.mode.name,
            f"{report.figures.recall_at_1:.3f}",
            f"{report.figures.recall_at_5:.3f}",
            f"{report.figures.mrr_at_10:.3f}",
            f"{report.figures.ndcg_at_10:.3f}",
            f"{report.p50_ms:.1f}",
            f"{report.p95_ms:.1f}",
        )
        for report in reports
    ]


def remarks(reports: Sequence[ModeReport]) -> list[str]:
    """What a reader must know before believing the figures, a sentence each; empty when all went as it should."""
    sentences = []
    for report in reports:
        name, total = report.mode.name, report.questions
        if report.mode.rerank and not report.reranked:
            sentences.append(f"{name}: no answer was reranked, the figures are those of the fused order.")
        sentences += [
            f"{name}: {item.answers} of {total} answers went without {item.stage} ({item.cause})."
            for item in report.degradations
        ]
        if report.no_hits:
            sentences.append(f"{name}: {report.no_hits} of {total} questions found nothing.")
    return sentences
