"""Metrics: names of the specification, closed label sets, figures that add up."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.observability import words
from app.observability.metrics import BuildInfo, Metrics, StoredFigures
from app.observability.words import OTHER, closed

SPECIFIED = (
    "kroshka_searches",
    "kroshka_search_seconds",
    "kroshka_search_stage_seconds",
    "kroshka_search_degraded",
    "kroshka_search_candidates",
    "kroshka_search_hits",
    "kroshka_search_top_relevance",
    "kroshka_search_lexical_blind",
    "kroshka_query_vector_cache",
    "kroshka_upstream_requests",
    "kroshka_upstream_seconds",
    "kroshka_upstream_inflight",
    "kroshka_upstream_batch_size",
    "kroshka_upstream_texts",
    "kroshka_circuit_state",
    "kroshka_jobs",
    "kroshka_job_oldest_seconds",
    "kroshka_jobs_finished",
    "kroshka_job_stage_seconds",
    "kroshka_ingested_documents",
    "kroshka_ingested_chunks",
    "kroshka_ingested_bytes",
    "kroshka_ingested_tokens",
    "kroshka_documents",
    "kroshka_chunks",
    "kroshka_index_points",
    "kroshka_index_bytes",
    "kroshka_config_loads",
    "kroshka_http_requests",
    "kroshka_http_seconds",
    "kroshka_auth_refused",
    "kroshka_limited",
    "kroshka_build",
    "kroshka_data_free_bytes",
)
BUILD = BuildInfo(version="1.2", engine="edge", embedder="local", reranker="late-interaction")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_every_metric_has_the_name_of_the_specification(tmp_path: Path) -> None:
    metrics = Metrics(build=BUILD, data_dir=tmp_path)

    assert set(SPECIFIED) <= {family.name for family in metrics.registry.collect()}
    assert (value(metrics, "kroshka_data_free_bytes") or 0) > 0
    labels = {"version": "1.2", "engine": "edge", "embedder": "local", "reranker": "late-interaction"}
    assert value(metrics, "kroshka_build_info", **labels) == 1


def test_two_services_in_one_process_count_for_themselves() -> None:
    first, second = Metrics(), Metrics()
    first.query_vector_looked_up("hit")

    assert value(first, "kroshka_query_vector_cache_total", result="hit") == 1
    assert value(second, "kroshka_query_vector_cache_total", result="hit") is None


def test_a_search_is_counted_in_seconds_by_stage() -> None:
    metrics = Metrics()
    metrics.search_finished(
        outcome="hits",
        door="http",
        timings_ms={"embed": 14.0, "search": 4.0, "total": 20.0},
        degraded=[("rerank", "timeout")],
        candidates={"dense": 20, "lexical": 3},
        hits=4,
        lexical_blind=True,
        top_relevance=0.9,
        reranked=False,
    )

    assert value(metrics, "kroshka_searches_total", outcome="hits", door="http") == 1
    assert value(metrics, "kroshka_search_seconds_sum") == pytest.approx(0.020)
    assert value(metrics, "kroshka_search_stage_seconds_sum", stage="embed") == pytest.approx(0.014)
    assert value(metrics, "kroshka_search_stage_seconds_count", stage="total") is None
    assert value(metrics, "kroshka_search_degraded_total", stage="rerank", cause="timeout") == 1
    assert value(metrics, "kroshka_search_candidates_sum", list="dense") == 20
    assert value(metrics, "kroshka_search_lexical_blind_total") == 1
    assert value(metrics, "kroshka_search_top_relevance_sum", reranked="false") == pytest.approx(0.9)


def test_an_upstream_is_counted_while_it_works_and_when_it_answers() -> None:
    metrics = Metrics()
    with metrics.upstream_busy("embed"):
        assert value(metrics, "kroshka_upstream_inflight", upstream="embed") == 1
    metrics.upstream_answered("embed", dialect="tei", result="ok", seconds=0.5, texts=8)
    metrics.circuit_changed("embed", "open")

    assert value(metrics, "kroshka_upstream_inflight", upstream="embed") == 0
    labels = {"upstream": "embed", "dialect": "tei", "result": "ok"}
    assert value(metrics, "kroshka_upstream_requests_total", **labels) == 1
    assert value(metrics, "kroshka_upstream_texts_total", upstream="embed") == 8
    assert value(metrics, "kroshka_circuit_state", upstream="embed") == 2


def test_states_without_a_job_go_back_to_zero() -> None:
    metrics = Metrics()
    metrics.stored(StoredFigures(jobs={("ingest", "queued"): 3}, documents=5, chunks=50, index_points=50))
    metrics.stored(StoredFigures(jobs={("ingest", "running"): 1}, documents=6, index_bytes=1000))

    assert value(metrics, "kroshka_jobs", kind="ingest", state="queued") == 0
    assert value(metrics, "kroshka_jobs", kind="ingest", state="running") == 1
    assert value(metrics, "kroshka_documents", state="active") == 6
    assert value(metrics, "kroshka_index_bytes", state="active") == 1000


@given(st.text(max_size=20))
def test_a_label_never_grows_with_what_people_send(text: str) -> None:
    assert closed(text, words.OUTCOMES) in words.OUTCOMES | {OTHER}


def test_unknown_words_are_counted_as_other() -> None:
    metrics = Metrics()
    metrics.search_finished(outcome="surprise", door="window", timings_ms={"dance": 1.0})
    metrics.http_finished(route="/v1/search", method="BREW", status=405, seconds=0.001)
    metrics.request_refused("mood")

    assert value(metrics, "kroshka_searches_total", outcome=OTHER, door=OTHER) == 1
    assert value(metrics, "kroshka_search_stage_seconds_count", stage=OTHER) == 1
    assert value(metrics, "kroshka_http_requests_total", route="/v1/search", method=OTHER, status="405") == 1
    assert value(metrics, "kroshka_auth_refused_total", reason=OTHER) == 1
