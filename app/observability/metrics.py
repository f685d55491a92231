"""Prometheus metrics, each under the name of spec/metrics, on a registry of their own.

Rooms call the methods with plain words and numbers; label values outside the closed sets become `other`.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

from app.observability import words
from app.observability.words import closed

PREFIX = "kroshka"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ITEMS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
CIRCUIT_STATES = {"closed": 0, "half_open": 1, "open": 2}


class StoredFigures(Struct, frozen=True, kw_only=True):
    """What is stored now. `jobs` is by (kind, state); `generation_state` is that of the index counted here."""

    jobs: Mapping[tuple[str, str], int] = {}
    oldest_job_s: Mapping[tuple[str, str], float] = {}
    documents: int = 0
    chunks: int = 0
    index_points: int = 0
    index_bytes: int | None = None
    generation_state: str = "active"


class BuildInfo(Struct, frozen=True, kw_only=True):
    """What is running, for `kroshka_build_info`."""

    version: str
    engine: str
    embedder: str
    reranker: str


class Metrics:
    """Every metric of the service; one object a process."""

    def __init__(self, *, build: BuildInfo | None = None, data_dir: Path | None = None) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._define_search()
        self._define_upstreams()
        self._define_ingestion()
        self._define_stored()
        self._define_http()
        if build is not None:
            self.describe_build(build)
        if data_dir is not None:
            self._gauge("data_free_bytes", "Free space where the data folder is").set_function(
                lambda: float(shutil.disk_usage(data_dir).free)
            )

    # searches

    def search_finished(
        self,
        *,
        outcome: str,
        door: str,
        timings_ms: Mapping[str, float],
        degraded: Sequence[tuple[str, str]] = (),
        candidates: Mapping[str, int] | None = None,
        hits: int = 0,
        lexical_blind: bool = False,
        top_relevance: float | None = None,
        reranked: bool = False,
    ) -> None:
        """`timings_ms` by stage, with `total`; `degraded` is (stage, cause); `candidates` by list."""
        self._searches.labels(closed(outcome, words.OUTCOMES), closed(door, words.DOORS)).inc()
        for stage, milliseconds in timings_ms.items():
            if stage == "total":
                self._search_seconds.observe(milliseconds / 1000)
            else:
                self._search_stage_seconds.labels(closed(stage, words.STAGES)).observe(milliseconds / 1000)
        for stage, cause in degraded:
            self._degraded.labels(closed(stage, words.STAGES), closed(cause, words.CAUSES)).inc()
        for name, count in (candidates or {}).items():
            self._candidates.labels(closed(name, words.LISTS)).observe(count)
        self._hits.observe(hits)
        self._lexical_blind.inc(lexical_blind)
        if top_relevance is not None:
            self._top_relevance.labels(str(reranked).lower()).observe(top_relevance)

    def query_vector_looked_up(self, result: str) -> None:
        """`result` is hit, shared or miss."""
        self._vector_cache.labels(closed(result, words.CACHE_RESULTS)).inc()

    # upstreams

    @contextmanager
    def upstream_busy(self, upstream: str) -> Iterator[None]:
        """Counts the request as in flight while the block runs."""
        with self._upstream_inflight.labels(closed(upstream, words.UPSTREAMS)).track_inprogress():
            yield

    def upstream_answered(
        self, upstream: str, *, dialect: str, result: str, seconds: float, texts: int | None = None
    ) -> None:
        """`result` is `ok` or a cause; `texts` is the size of the batch, where there is one."""
        name = closed(upstream, words.UPSTREAMS)
        labels = (name, closed(dialect, words.DIALECTS), closed(result, words.CAUSES | {"ok"}))
        self._upstream_requests.labels(*labels).inc()
        self._upstream_seconds.labels(*labels).observe(seconds)
        if texts is not None:
            self._upstream_batch.labels(name).observe(texts)
            self._upstream_texts.labels(name).inc(texts)

    def circuit_changed(self, upstream: str, state: str) -> None:
        """`state` is closed, half_open or open."""
        self._circuit.labels(closed(upstream, words.UPSTREAMS)).set(CIRCUIT_STATES[state])

    # ingestion and jobs

    def document_ingested(
        self, document_format: str, result: str, *, chunks: int = 0, size_bytes: int = 0, tokens: int = 0
    ) -> None:
        """`document_format` is the parser's name, `result` indexed, failed, cancelled or unchanged."""
        labels = (closed(document_format, words.FORMATS), closed(result, words.INGEST_RESULTS))
        self._ingested_documents.labels(*labels).inc()
        self._ingested_chunks.labels(*labels).inc(chunks)
        self._ingested_bytes.labels(*labels).inc(size_bytes)
        self._ingested_tokens.labels(*labels).inc(tokens)

    def job_finished(self, kind: str, result: str) -> None:
        """`result` is the state in which the job ended, or `queued` when it will be tried again."""
        self._jobs_finished.labels(closed(kind, words.JOB_KINDS), closed(result, words.JOB_STATES)).inc()

    def job_stage_took(self, kind: str, stage: str, result: str, seconds: float) -> None:
        labels = (closed(kind, words.JOB_KINDS), closed(result, words.JOB_STATES), closed(stage, words.JOB_STAGES))
        self._job_stage_seconds.labels(*labels).observe(seconds)

    # what is stored

    def stored(self, figures: StoredFigures) -> None:
        """Sets the gauges; states that have no job any more go to zero."""
        for kind in words.JOB_KINDS:
            for state in words.JOB_STATES:
                self._jobs.labels(kind, state).set(figures.jobs.get((kind, state), 0))
        for (kind, state), age_s in figures.oldest_job_s.items():
            self._oldest_job.labels(closed(kind, words.JOB_KINDS), closed(state, words.JOB_STATES)).set(age_s)
        state = closed(figures.generation_state, words.GENERATION_STATES)
        self._documents.labels(state).set(figures.documents)
        self._chunks.labels(state).set(figures.chunks)
        self._index_points.labels(state).set(figures.index_points)
        if figures.index_bytes is not None:
            self._index_bytes.labels(state).set(figures.index_bytes)

    # the edge and the configuration

    def http_finished(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """`route` is the template, never the path: `/v1/documents/{document_id}`."""
        labels = (route, closed(method, words.METHODS), str(status))
        self._http_requests.labels(*labels).inc()
        self._http_seconds.labels(*labels).observe(seconds)

    def request_refused(self, reason: str) -> None:
        """A request that may not come in: `host`, `origin`, `proxy`, `scope`."""
        self._auth_refused.labels(closed(reason, words.REFUSALS)).inc()

    def request_limited(self, reason: str) -> None:
        """A request over a limit: `body`, `rate`, `quota`."""
        self._limited.labels(closed(reason, words.LIMITS)).inc()

    def config_loaded(self, layer: str, result: str) -> None:
        """ConfigService's observer."""
        self._config_loads.labels(closed(layer, words.CONFIG_LAYERS), closed(result, words.CONFIG_RESULTS)).inc()

    def describe_build(self, build: BuildInfo) -> None:
        """Becomes `kroshka_build_info{version, engine, embedder, reranker} 1`."""
        self._build.info(
            {
                "version": build.version,
                "engine": build.engine,
                "embedder": build.embedder,
                "reranker": build.reranker,
            }
        )

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The scrape's body and its media type; OpenMetrics for who asks for it."""
        encode, media_type = choose_encoder(accept)
        return encode(self.registry), media_type

    # definitions

    def _define_search(self) -> None:
        self._searches = self._counter("searches", "Searches that ended", "outcome", "door")
        self._search_seconds = self._seconds("search_seconds", "From query to hits")
        self._search_stage_seconds = self._seconds("search_stage_seconds", "One stage of a search", "stage")
        self._degraded = self._counter("search_degraded", "Searches that missed a helper", "stage", "cause")
        self._candidates = self._sizes("search_candidates", "Candidates by list", "list")
        self._hits = self._sizes("search_hits", "Hits of a search")
        self._top_relevance = Histogram(
            f"{PREFIX}_search_top_relevance",
            "Relevance of the first hit",
            ("reranked",),
            buckets=SHARES,
            registry=self.registry,
        )
        self._lexical_blind = self._counter("search_lexical_blind", "Searches of which no word is in the index")
        self._vector_cache = self._counter("query_vector_cache", "Look-ups of query vectors", "result")

    def _define_upstreams(self) -> None:
        labels = ("upstream", "dialect", "result")
        self._upstream_requests = self._counter("upstream_requests", "Requests to helpers", *labels)
        self._upstream_seconds = self._seconds("upstream_seconds", "Answers of helpers", *labels)
        self._upstream_inflight = self._gauge("upstream_inflight", "Requests on their way to helpers", "upstream")
        self._upstream_batch = self._sizes("upstream_batch_size", "Texts in one request", "upstream")
        self._upstream_texts = self._counter("upstream_texts", "Texts sent to helpers", "upstream")
        self._circuit = self._gauge("circuit_state", "0 closed, 1 half open, 2 open", "upstream")

    def _define_ingestion(self) -> None:
        labels = ("format", "result")
        self._ingested_documents = self._counter("ingested_documents", "Documents that went through", *labels)
        self._ingested_chunks = self._counter("ingested_chunks", "Chunks made of them", *labels)
        self._ingested_bytes = self._counter("ingested_bytes", "Bytes of their originals", *labels)
        self._ingested_tokens = self._counter("ingested_tokens", "Tokens embedded", *labels)
        self._jobs_finished = self._counter("jobs_finished", "Jobs that ended", "kind", "result")
        self._job_stage_seconds = self._seconds("job_stage_seconds", "Stages of jobs", "kind", "result", "stage")

    def _define_stored(self) -> None:
        self._jobs = self._gauge("jobs", "Jobs by kind and state", "kind", "state")
        self._oldest_job = self._gauge("job_oldest_seconds", "Age of the oldest job", "kind", "state")
        self._documents = self._gauge("documents", "Documents", "state")
        self._chunks = self._gauge("chunks", "Chunks of current revisions", "state")
        self._index_points = self._gauge("index_points", "Points in the vector index", "state")
        self._index_bytes = self._gauge("index_bytes", "Bytes of the vector index on disk", "state")

    def _define_http(self) -> None:
        labels = ("route", "method", "status")
        self._http_requests = self._counter("http_requests", "Requests by route template", *labels)
        self._http_seconds = self._seconds("http_seconds", "From request to the end of the answer", *labels)
        self._auth_refused = self._counter("auth_refused", "Requests that may not come in", "reason")
        self._limited = self._counter("limited", "Requests over a limit", "reason")
        self._config_loads = self._counter("config_loads", "Look-ups of the knobs", "layer", "result")
        self._build = Info(f"{PREFIX}_build", "What is running", registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _seconds(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, labels, buckets=SECONDS, registry=self.registry)

    def _sizes(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, labels, buckets=ITEMS, registry=self.registry)
