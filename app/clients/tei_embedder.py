"""Text Embeddings Inference as the port's Embedder: `GET /info` once, then `POST /embed`.

Passages and queries have a circuit and permits each, so that a document which upsets the server, or a long ingestion,
keeps no query away.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from app.clients.circuit import CircuitBreaker
from app.clients.http import Refusal, Retries, Upstream, UpstreamCall, base_url, clean_text
from app.clients.tei_info import MAX_REQUEST_BYTES, TeiInfo, batches, halves, parse_info
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable, InvalidInput, UpstreamRefused
from app.domain.vectors import EmbeddingModel, FloatArray, PassageVectors, QueryVectors

CHARACTERS_PER_TOKEN = 250  # TEI refuses, or cuts, what is longer than this times its limit
_BYTES_PER_CHARACTER = 6  # of JSON, at most: control characters are escaped
_MAX_PARALLEL_QUERIES = 16
_MAX_PARALLEL_PASSAGES = 4  # requests; more would only stand in the server's queue before a query
_FAULTS_OF_TEXTS = frozenset({"validation", "tokenizer", "empty"})
_STARTING = frozenset({"refused", "reset", "status_5xx", "overloaded"})
_POLL_S = 0.5
_DEPLOYMENT_RETRY_S = 30.0


class _EmbedRequest(msgspec.Struct, frozen=True):
    """`truncate` is always said: its default changed between versions and is the server's to set."""

    inputs: Sequence[str | msgspec.Raw]
    truncate: bool
    normalize: bool = True


class _Lane(msgspec.Struct, frozen=True):
    """What one kind of call has of its own."""

    circuit: CircuitBreaker
    permits: asyncio.Semaphore


class TeiEmbedder:
    """Retries what may pass within the deadline, never a time-out. Refuses null, endless and zero vectors."""

    def __init__(
        self,
        *,
        upstream: Upstream,
        info: TeiInfo,
        model: EmbeddingModel,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        query_circuit: CircuitBreaker | None = None,
        passage_circuit: CircuitBreaker | None = None,
    ) -> None:
        """Use `connect`, which reads `info` and measures the dimension."""
        self._upstream, self._info, self._model = upstream, info, model
        self._max_request_bytes, self._batch_size = max_request_bytes, info.batch_size
        parallel_queries = max(1, min(_MAX_PARALLEL_QUERIES, info.max_concurrent_requests // 2))
        self._queries = _Lane(query_circuit or CircuitBreaker(), asyncio.Semaphore(parallel_queries))
        self._passages = _Lane(
            passage_circuit or CircuitBreaker(), asyncio.Semaphore(info.parallel_requests(_MAX_PARALLEL_PASSAGES))
        )

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        api_key: str | None,
        version: str = "",
        connect_timeout_s: float = 30.0,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        retries: Retries | None = None,
        fair_wait_s: float = 0.5,
        query_circuit: CircuitBreaker | None = None,
        passage_circuit: CircuitBreaker | None = None,
        observer: Callable[[UpstreamCall], None] | None = None,
    ) -> "TeiEmbedder":
        """Waits up to `connect_timeout_s` for a server that is still loading (its port is closed until it is ready).

        `version` is part of the identity of the vectors; without it the server's `--revision` is. Raises
        EmbedderUnavailable, or UpstreamRefused when there is no TEI with an embedding model at the address.
        """
        upstream = Upstream(
            name="the embedder",
            base_url=base_url(url, "/embed", "/embeddings"),
            api_key=api_key,
            unavailable=EmbedderUnavailable,
            retries=retries or Retries(),
            fair_wait_s=fair_wait_s,
            observer=observer,
        )
        try:
            info, dimension = await _first_contact(upstream, Deadline.after(connect_timeout_s))
        except BaseException:
            await upstream.aclose()
            raise
        return cls(
            upstream=upstream,
            info=info,
            model=_model(info, version, dimension),
            max_request_bytes=max_request_bytes,
            query_circuit=query_circuit,
            passage_circuit=passage_circuit,
        )

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        """The server cuts what is too long for the model; here it is cut to what a request can hold."""
        _check_not_empty("query", text)
        most = min(CHARACTERS_PER_TOKEN * self._info.max_input_length, self._max_request_bytes // _BYTES_PER_CHARACTER)
        body = msgspec.json.encode(_EmbedRequest([clean_text(text[:most])], truncate=True))
        try:
            return QueryVectors(dense=(await self._ask(body, 1, self._queries, deadline))[0])
        except Refusal as error:
            raise self._in_service(error) from error

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        """Vectors in the texts' order. InvalidInput names the first text that is empty, or too long for the server."""
        for index, text in enumerate(texts):
            _check_not_empty(f"/texts/{index}", text)
        encoded = [msgspec.json.encode(clean_text(text)) for text in texts]
        parts = batches([len(text) for text in encoded], max_count=self._batch_size, max_bytes=self._max_request_bytes)
        # All are awaited before the first failure is raised: which text it names must not depend on the weather.
        outcomes = await asyncio.gather(
            *(self._embed(encoded, part, deadline) for part in parts), return_exceptions=True
        )
        empty = np.zeros((0, self._model.dimension), np.float32)
        return PassageVectors(dense=np.concatenate([empty, *(_rows_or_raise(outcome) for outcome in outcomes)]))

    async def aclose(self) -> None:
        """Closes the connections; may be called twice."""
        await self._upstream.aclose()

    async def _embed(self, texts: Sequence[bytes], part: range, deadline: Deadline) -> FloatArray:
        """One batch; in halves when the server would not take it whole, down to the text that is at fault."""
        inputs = [msgspec.Raw(text) for text in texts[part.start : part.stop]]
        body = msgspec.json.encode(_EmbedRequest(inputs, truncate=False))
        try:
            return await self._ask(body, len(part), self._passages, deadline)
        except Refusal as error:
            if not _is_of_texts(error):
                raise self._in_service(error) from error
            if len(part) == 1:
                raise self._refused_text(part.start, error) from error
            if "batch size" in error.body:
                self._batch_size = len(part) // 2
        except EmbedderUnavailable as error:
            # No permits for so many texts at once, or no memory: fewer may pass.
            if error.cause not in ("overloaded", "status_4xx") or len(part) == 1:
                raise
        first, second = halves(part)
        return np.concatenate([await self._embed(texts, first, deadline), await self._embed(texts, second, deadline)])

    async def _ask(self, body: bytes, count: int, lane: _Lane, deadline: Deadline) -> FloatArray:
        async with self._upstream.operation(lane.circuit, deadline), lane.permits:
            rows = _parse_rows(self._upstream, await self._upstream.post("/embed", body, deadline), count)
            if rows.shape[1] != self._model.dimension:
                raise self._upstream.failed(
                    f"vectors of {rows.shape[1]} numbers instead of {self._model.dimension}, as if of another model",
                    cause="bad_answer",
                )
            return rows

    def _refused_text(self, index: int, error: Refusal) -> InvalidInput:
        limit = self._info.max_input_length
        if error.kind in ("tokenizer", "empty"):
            return InvalidInput(f"/texts/{index}", "the embedder's tokenizer finds no text in it")
        return InvalidInput(f"/texts/{index}", f"longer than the embedder's {limit} tokens", limit=limit)

    def _in_service(self, error: Refusal) -> Exception:
        """A server that served us and now refuses everybody is an outage: documents wait for its administrator."""
        if not error.is_of_deployment:
            return error
        return self._upstream.failed(f"refuses us, {error}", cause="refused", retry_after_s=_DEPLOYMENT_RETRY_S)


async def _first_contact(upstream: Upstream, deadline: Deadline) -> tuple[TeiInfo, int]:
    """The server's own description and the dimension of its vectors; waits while it is starting."""
    while True:
        try:
            async with upstream.operation(CircuitBreaker(), deadline):
                return await _introduced(upstream, deadline)
        except EmbedderUnavailable as error:
            if error.cause not in _STARTING or deadline.remaining_s() <= _POLL_S:
                raise
        await asyncio.sleep(_POLL_S)


async def _introduced(upstream: Upstream, deadline: Deadline) -> tuple[TeiInfo, int]:
    info = parse_info(await upstream.get("/info", deadline))
    if info is None:
        raise UpstreamRefused("the embedder: its /info is not that of Text Embeddings Inference", cause="bad_answer")
    if info.kind not in ("embedding", ""):
        raise UpstreamRefused(f"the embedder: {info.model_id} is a {info.kind}", cause="bad_answer")
    body = msgspec.json.encode(_EmbedRequest(["dimension"], truncate=True))
    return info, int(_parse_rows(upstream, await upstream.post("/embed", body, deadline), 1).shape[1])


def _model(info: TeiInfo, version: str, dimension: int) -> EmbeddingModel:
    return EmbeddingModel(
        name=info.model_id,
        version=version or info.model_sha or "unpinned",
        dimension=dimension,
        max_input_tokens=info.max_input_length,
    )


def _parse_rows(upstream: Upstream, body: bytes, count: int) -> FloatArray:
    """Shape (count, dim), float32, normalised here once more: half precision leaves lengths such as 0.9997.

    TEI writes NaN as null and answers 200 all the same: such a vector must never be stored.
    """
    try:
        rows = msgspec.json.decode(body, type=list[list[float | None]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise upstream.failed("the answer holds no vectors", cause="bad_answer") from None
    if len(rows) != count or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise upstream.failed(f"{count} vectors of equal length were due, {len(rows)} rows came", cause="bad_answer")
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is found below
        matrix = np.array(rows, dtype=np.float32)  # null becomes NaN
    norms = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    broken = np.flatnonzero(~(np.isfinite(norms) & (norms > 0.0)))
    if broken.size:
        raise upstream.failed(f"vector {broken[0]} of {count} is not finite or has no length", cause="bad_answer")
    return np.asarray(matrix / norms, dtype=np.float32)


def _rows_or_raise(outcome: FloatArray | BaseException) -> FloatArray:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _is_of_texts(error: Refusal) -> bool:
    return error.kind in _FAULTS_OF_TEXTS or error.status == 413


def _check_not_empty(pointer: str, text: str) -> None:
    """One empty text would fail its whole batch."""
    if not text.strip():
        raise InvalidInput(pointer, "the text is empty", limit=1)
