"""One line and the counts of each finished search and ingest, from the pipelines' own reports."""

from app.domain.jobs import JobKind, JobState
from app.ingestion.seams import IngestObserver as IngestSeam
from app.ingestion.seams import IngestReport
from app.observability import words
from app.observability.ingestions import IngestObserver
from app.observability.metrics import Metrics
from app.observability.process import resident_bytes
from app.observability.searches import SearchObserver
from app.retrieval.pipeline import Observer, SearchReport
from tests.support.logging import captured_logs


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_search_is_one_line_with_its_stage_times() -> None:
    metrics = Metrics()
    observer: Observer = SearchObserver(metrics=metrics)
    report = SearchReport(
        outcome="hits",
        door="tool",
        timings_ms={"embed": 14.14, "search": 3.9, "fuse": 0.1, "total": 18.26},
        degraded=[("rerank", "timeout")],
        dense_candidates=20,
        lexical_candidates=5,
        hits=4,
        vector_cache="miss",
        top_relevance=0.8,
        reranked=True,
    )
    with captured_logs() as logged:
        observer(report)

    (line,) = logged.lines("rag_retrieval")
    assert (line["outcome"], line["door"], line["result_count"], line["candidates"]) == ("hits", "tool", 4, 25)
    assert (line["total_ms"], line["embed_ms"], line["search_ms"]) == (18.3, 14.1, 3.9)
    assert line["degraded"] == ["rerank:timeout"]
    assert "rerank_ms" not in line
    assert value(metrics, "kroshka_searches_total", outcome="hits", door="tool") == 1
    assert value(metrics, "kroshka_query_vector_cache_total", result="miss") == 1
    assert value(metrics, "kroshka_search_top_relevance_count", reranked="true") == 1


def test_a_search_without_a_look_up_or_a_hit_counts_neither() -> None:
    metrics = Metrics()
    SearchObserver(metrics=metrics)(SearchReport(outcome="no_query", door="http", timings_ms={}))

    assert value(metrics, "kroshka_query_vector_cache_total", result="miss") is None
    assert value(metrics, "kroshka_search_hits_sum") == 0
    assert value(metrics, "kroshka_searches_total", outcome="no_query", door="http") == 1


def test_an_ingest_is_one_line_and_counts_under_its_format() -> None:
    metrics = Metrics()
    observer: IngestSeam = IngestObserver(metrics=metrics)
    with captured_logs() as logged:
        observer(
            IngestReport(
                media_type="text/markdown",
                result="indexed",
                chunks=7,
                size_bytes=900,
                stage_s={"parse": 0.01, "embed": 1.4},
            )
        )

    (line,) = logged.lines("document_ingested")
    assert (line["format"], line["result"], line["chunks"], line["embed_ms"]) == ("markdown", "indexed", 7, 1400.0)
    labels = {"format": "markdown", "result": "indexed"}
    assert value(metrics, "kroshka_ingested_documents_total", **labels) == 1
    assert value(metrics, "kroshka_ingested_chunks_total", **labels) == 7
    assert value(metrics, "kroshka_ingested_bytes_total", **labels) == 900
    assert value(metrics, "kroshka_jobs_finished_total", kind="ingest", result="done") == 1
    stage = {"kind": "ingest", "result": "done", "stage": "embed"}
    assert value(metrics, "kroshka_job_stage_seconds_sum", **stage) == 1.4


def test_a_failed_ingest_of_an_unknown_format_is_counted_as_other() -> None:
    metrics = Metrics()
    IngestObserver(metrics=metrics)(IngestReport(media_type="application/x-secret", result="failed"))

    assert value(metrics, "kroshka_ingested_documents_total", format="other", result="failed") == 1
    assert value(metrics, "kroshka_jobs_finished_total", kind="ingest", result="dead") == 1


def test_the_closed_sets_know_every_kind_and_state_of_a_job() -> None:
    assert {kind.value for kind in JobKind} <= words.JOB_KINDS
    assert {state.value for state in JobState} <= words.JOB_STATES


def test_a_process_knows_its_memory() -> None:
    assert 1 << 20 < resident_bytes() < 1 << 40
