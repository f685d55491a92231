"""Text Embeddings Inference as the port's Embedder: `GET /info` once, then `POST /embed`.

Passages and queries have a circuit and permits each, so that a document which upsets the server, or a long ingestion,
keeps no query away.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

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
_SPLIT_STATUSES = frozenset({400, 413, 422, 424, 429})
_TEXTS_FAULT = frozenset({400, 413, 422})
_DEPLOYMENT_RETRY_S = 30.0


class _EmbedRequest(msgspec.Struct, frozen=True):
    """`truncate` is always said: its default changed between versions and is the server's to set."""

    inputs: list[str]
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
        self._max_request_bytes = max_request_bytes
        parallel_queries = max(1, min(_MAX_PARALLEL_QUERIES, info.max_concurrent_requests // 2))
        self._queries = _Lane(query_circuit or CircuitBreaker(), asyncio.Semaphore(parallel_queries))
        self._passages = _Lane(passage_circuit or CircuitBreaker(), asyncio.Semaphore(info.parallel_requests))

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
        most = min(CHARACTERS_PER_TOKEN * self._info.max_input_length, self._max_request_bytes // _BYTES_PER_CHARACTER)
        _check_not_empty("query", text)
        body = msgspec.json.encode(_EmbedRequest([clean_text(text[:most])], truncate=True))

        async def ask() -> FloatArray:
            return await self._ask(body, 1, self._queries, deadline)

        return QueryVectors(dense=(await self._translated(ask))[0])

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        """Vectors in the texts' order. InvalidInput names the first text that the server finds empty or too long."""
        for index, text in enumerate(texts):
            _check_not_empty(f"/texts/{index}", text)
        encoded = [msgspec.Raw(msgspec.json.encode(clean_text(text))) for text in texts]
        parts = batches(
            [len(bytes(text)) for text in encoded],
            max_count=self._info.batch_size,
            max_bytes=self._max_request_bytes,
        )

        async def embed(part: range) -> FloatArray:
            return await self._translated(lambda: self._embed(encoded, part, deadline))

        # All are awaited before the first failure is raised: its place in the input must not depend on the weather.
        outcomes = await asyncio.gather(*(embed(part) for part in parts), return_exceptions=True)
        rows = [_raised(outcome) for outcome in outcomes]
        empty = np.zeros((0, self._model.dimension), np.float32)
        return PassageVectors(dense=np.concatenate([empty, *rows]))

    async def aclose(self) -> None:
        """Closes the connections; may be called twice."""
        await self._upstream.aclose()

    async def _embed(self, texts: Sequence[msgspec.Raw], part: range, deadline: Deadline) -> FloatArray:
        """One batch; in halves when the server would not take it whole, down to the text that is at fault."""
        body = _passages_body(texts[part.start : part.stop])
        try:
            return await self._ask(body, len(part), self._passages, deadline)
        except Refusal as error:
            if error.status not in _TEXTS_FAULT:
                raise
            if len(part) == 1:
                raise self._text_refused(part.start, error) from error
        except EmbedderUnavailable as error:
            # No permits for so many texts at once, or no memory: fewer may pass.
            if error.cause not in ("overloaded", "status_4xx") or len(part) == 1:
                raise
        first, second = halves(part)
        return np.concatenate([await self._embed(texts, first, deadline), await self._embed(texts, second, deadline)])

    async def _ask(self, body: bytes, count: int, lane: _Lane, deadline: Deadline) -> FloatArray:
        async with lane.permits_in_time(self._upstream, deadline), self._upstream.operation(lane.circuit, deadline):
            return self._rows(await self._upstream.post("/embed", body, deadline), count)

    def _rows(self, body: bytes, count: int) -> FloatArray:
        rows = _parse_rows(self._upstream, body, count)
        if rows.shape[1] != self._model.dimension:
            raise self._upstream.failed(
                f"vectors of {rows.shape[1]} numbers instead of {self._model.dimension}: another model?",
                cause="bad_answer",
            )
        return rows
