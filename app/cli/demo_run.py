"""The work of `kroshka demo`."""

import time
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from msgspec import UNSET, Struct

import app
from app.bootstrap import Service
from app.cli.doors import LocalDoor, SearchWish
from app.cli.ingesting import Ingestion, Outcome, SourceFile
from app.cli.rendering import counting_bar, show_progress
from app.domain.deadline import Deadline
from app.domain.errors import ConfigurationError, KroshkaError
from app.domain.search import Degradation, Hit
from app.evaluation.golden import (
    GoldenSet,
    SampleCollection,
    figures_by_kind,
    load_collections,
    load_golden,
    section_unit,
)
from app.evaluation.modes import MODES
from app.evaluation.rejection import compare_scores
from app.evaluation.report import GoldenView, ModelView, embedder_view, golden_view, reranker_view
from app.evaluation.runner import Conditions, ask, report_of

QUESTIONS = (
    "what is retrieval augmented generation",
    "В какой срок регистрируется жалоба?",
    "CDATA-XPON ONU",
    "зачем совмещать векторный и лексический поиск",
    "网络中断超过三天怎么赔偿",
)
"""An introduction and its sections, near-duplicate regulations, an exact name, and two across languages."""

TOP_K = 3
STATUS_WAIT_S = 5.0


class DemoCollection(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of a collection's files."""

    name: str
    documents: tuple[Outcome, ...]


class DemoSearch(Struct, frozen=True, kw_only=True, rename="camel"):
    """One question with its hits before and after reranking."""

    query: str
    before_rerank: tuple[Hit, ...]
    hits: tuple[Hit, ...]
    degraded: tuple[Degradation, ...]
    timings_ms: dict[str, float]


class DemoReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """What `kroshka demo --json` prints."""

    engine: str
    embedder: ModelView
    reranker: ModelView | None
    collections: tuple[DemoCollection, ...]
    chunks: int
    embedded_chunks: int
    index_seconds: float
    searches: tuple[DemoSearch, ...]
    golden: GoldenView


def samples_folder() -> Path:
    """In an installed package beside the code, in a checkout at its root. Raises ConfigurationError."""
    package = Path(app.__file__).parent
    for folder in (package / "samples", package.parent / "samples"):
        if (folder / "collections.json").is_file():
            return folder
    raise ConfigurationError("the sample documents are not installed")


async def run_demo(service: Service) -> DemoReport:
    """Index, search, measure. Raises KroshkaError when a sample cannot be indexed."""
    folder = samples_folder()
    collections = load_collections(folder / "collections.json")
    golden = load_golden(folder / "golden.jsonl", collections)
    door, began = LocalDoor(service=service), time.perf_counter()
    ids = {one.name: await door.ensure_collection(one.name, one.description) for one in collections}
    indexed = [await _index(door, folder, one, ids[one.name]) for one in collections]
    index_s = time.perf_counter() - began
    outcomes = [outcome for collection in indexed for outcome in collection.documents]
    return DemoReport(
        engine=(await service.index.status(Deadline.after(STATUS_WAIT_S))).engine,
        embedder=embedder_view(service.model),
        reranker=reranker_view(service.models.info),
        collections=tuple(indexed),
        chunks=sum(outcome.chunks for outcome in outcomes),
        embedded_chunks=sum(outcome.chunks for outcome in outcomes if outcome.status == "indexed"),
        index_seconds=round(index_s, 2),
        searches=tuple([await _search(door, question) for question in QUESTIONS]),
        golden=await _measure(service, golden, ids),
    )


async def _index(door: LocalDoor, folder: Path, collection: SampleCollection, collection_id: UUID) -> DemoCollection:
    files = [SourceFile(folder / name, name) for name in collection.files]
    run = Ingestion(door=door, collection_id=collection_id, files=files)
    await show_progress(run.upload(), f"«{collection.name}» uploading", unit="files")
    await show_progress(run.follow(), f"«{collection.name}» indexing")
    for outcome in run.outcomes:
        if outcome.status not in ("indexed", "unchanged"):
            raise KroshkaError(f"{outcome.source_name}: {outcome.error}")
    return DemoCollection(name=collection.name, documents=tuple(run.outcomes))


async def _search(door: LocalDoor, question: str) -> DemoSearch:
    result = await door.search(SearchWish(text=question, top_k=TOP_K, explain=True))
    before = () if result.before_rerank is UNSET else result.before_rerank
    return DemoSearch(
        query=question,
        before_rerank=before[:TOP_K],
        hits=result.hits,
        degraded=result.degraded,
        timings_ms=result.timings_ms,
    )


async def _measure(service: Service, golden: GoldenSet, ids: Mapping[str, UUID]) -> GoldenView:
    mode, conditions = MODES["hybrid+rerank"], Conditions(unit_of=section_unit)
    questions = [question.question(ids) for question in golden.answerable]
    strangers = [question.question(ids) for question in golden.unanswerable]
    with counting_bar("golden questions") as advance:
        answers = await ask(service.search, questions, mode, conditions, on_progress=advance)
    with counting_bar("questions without an answer") as advance:
        unanswered = await ask(service.search, strangers, mode, conditions, on_progress=advance)
    report = report_of(questions, answers, mode, top_k=conditions.top_k)
    kinds = figures_by_kind(golden.answerable, questions, answers)
    return golden_view(report, kinds, compare_scores(answers, unanswered))
