"""A cross-encoder behind HTTP as the port's Reranker: TEI, or whoever speaks one of the dialects."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from app.clients.circuit import CircuitBreaker
from app.clients.http import Refusal, Retries, Upstream, UpstreamCall, base_url, clean_text
from app.clients.rerank.answers import is_logits, parse_model, parse_scores, sigmoid
from app.clients.rerank.dialects import DIALECTS, Dialect, is_dialect_signal, request_body
from app.clients.tei_info import MAX_REQUEST_BYTES, TeiInfo, batches, halves, parse_info
from app.domain.deadline import Deadline
from app.domain.errors import RerankerUnavailable
from app.domain.ports import RerankCandidate, RerankQuery, RerankScores

ScoreScale = Literal["auto", "sigmoid", "logit"]

_TOO_LARGE = frozenset({400, 413, 422})
_MAX_PARALLEL = 16
_UNNAMED = "unknown"
T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True):
    """Scores of a range of texts, by place in the whole; `model` as the answer names it."""

    scores: dict[int, float]
    model: str


class HttpReranker:
    """Scores of one scale for all candidates, or an error: one part that fails fails the whole.

    The dialect is found at the first call and kept until the server does not know it any more. One retry, none after
    a time-out: a search waits for it.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str | None,
        model: str | None = None,
        score_scale: ScoreScale = "auto",
        max_query_characters: int = 2_000,
        max_text_characters: int = 8_000,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        retries: Retries | None = None,
        fair_wait_s: float = 0.5,
        circuit: CircuitBreaker | None = None,
        observer: Callable[[UpstreamCall], None] | None = None,
    ) -> None:
        """`model` is sent to servers that hold several. `auto` takes scores outside 0..1 for logits, from then on all.

        The longest texts are cut here: other servers than TEI fail a whole request for one of them.
        """
        self._upstream = Upstream(
            name="the reranker",
            base_url=base_url(url, "/rerank"),
            api_key=api_key,
            unavailable=RerankerUnavailable,
            retries=retries or Retries(attempts=2, base_s=0.05),
            fair_wait_s=fair_wait_s,
            observer=observer,
        )
        self._model, self._score_scale, self._circuit = model, score_scale, circuit or CircuitBreaker()
        self._max_query_characters, self._max_text_characters = max_query_characters, max_text_characters
        self._max_request_bytes = max_request_bytes
        self._meeting = asyncio.Lock()
        self._forget()

    async def rank(self, query: RerankQuery, candidates: Sequence[RerankCandidate], deadline: Deadline) -> RerankScores:
        """Sigmoid scores, None for empty texts and for those that the server left out.

        Raises RerankerUnavailable, or UpstreamRefused for a key, an address or a model that will not do.
        """
        places = [index for index, candidate in enumerate(candidates) if candidate.text.strip()]
        texts = [clean_text(candidates[index].text[: self._max_text_characters]) for index in places]
        if not texts:
            return self._answer([None] * len(candidates), self._model or _UNNAMED)
        question = clean_text(query.text[: self._max_query_characters])
        async with self._upstream.operation(self._circuit, deadline):
            parts = await self._parts(question, texts, deadline)
            scores = self._calibrated({places[index]: score for part in parts for index, score in part.scores.items()})
        return self._answer([scores.get(index) for index in range(len(candidates))], parts[0].model)

    async def aclose(self) -> None:
        """Closes the connections; may be called twice."""
        await self._upstream.aclose()

    def _forget(self) -> None:
        """As before the first call."""
        self._use(TeiInfo(model_id=""))
        self._dialect: Dialect | None = None
        self._logits_seen = False

    def _use(self, info: TeiInfo) -> None:
        self._info, self._batch_size = info, info.batch_size
        self._permits = asyncio.Semaphore(info.parallel_requests(_MAX_PARALLEL))

    async def _parts(self, query: str, texts: Sequence[str], deadline: Deadline) -> list[_Part]:
        """Asks once more in other dialects when the one that was remembered is not understood any longer."""
        remembered = self._dialect is not None
        try:
            return await self._ask_all(query, texts, deadline)
        except Refusal as error:
            if not remembered or not is_dialect_signal(error):
                raise
        self._forget()
        return await self._ask_all(query, texts, deadline)

    async def _ask_all(self, query: str, texts: Sequence[str], deadline: Deadline) -> list[_Part]:
        dialect = await self._met(query, texts[0], deadline)
        ranges = batches(
            [len(msgspec.json.encode(text)) for text in texts],
            max_count=self._batch_size,
            max_bytes=self._max_request_bytes,
        )
        asked = await _all([self._ask(dialect, query, texts, part, deadline) for part in ranges])
        return [part for parts in asked for part in parts]

    async def _ask(
        self, dialect: Dialect, query: str, texts: Sequence[str], part: range, deadline: Deadline
    ) -> list[_Part]:
        """One request; in halves when the server finds it too large."""
        body = request_body(dialect, query, texts[part.start : part.stop], self._model)
        try:
            async with self._permits:
                answer = await self._upstream.post(dialect.path, body, deadline)
        except Refusal as error:
            if error.status not in _TOO_LARGE or len(part) == 1 or is_dialect_signal(error):
                raise
            if "batch size" in error.body:
                self._batch_size = min(self._batch_size, len(part) // 2)
        else:
            return [self._read(answer, part)]
        return [
            answered for half in halves(part) for answered in await self._ask(dialect, query, texts, half, deadline)
        ]

    def _read(self, answer: bytes, part: range) -> _Part:
        scores = parse_scores(answer, len(part))
        if not scores:
            raise self._upstream.failed("the answer holds no scores", cause="bad_answer")
        model = self._info.model_id or parse_model(answer) or self._model or _UNNAMED
        return _Part(scores={part.start + index: score for index, score in scores.items()}, model=model)

    async def _met(self, query: str, text: str, deadline: Deadline) -> Dialect:
        """The server's dialect; whoever comes first finds it out, the others wait for the result."""
        async with self._meeting:
            if self._dialect is None:
                await self._read_info(deadline)
                self._dialect = await self._negotiated(query, text, deadline)
            return self._dialect

    async def _read_info(self, deadline: Deadline) -> None:
        """Limits of a TEI server. Others have no such route, or answer something else there: that is no failure."""
        try:
            info = parse_info(await self._upstream.get("/info", deadline))
        except Refusal:
            return
        except RerankerUnavailable as error:
            if error.cause != "status_5xx":
                raise
            return
        if info is not None and info.kind not in ("reranker", ""):
            raise Refusal(f"the reranker: {info.model_id} is of type {info.kind}", status=424, wrong_model=True)
        if info is not None:
            self._use(info)

    async def _negotiated(self, query: str, text: str, deadline: Deadline) -> Dialect:
        """The first dialect in which one text gets a score."""
        for dialect in DIALECTS:
            try:
                answer = await self._upstream.post(
                    dialect.path, request_body(dialect, query, [text], self._model), deadline
                )
            except Refusal as error:
                if is_dialect_signal(error):
                    continue
                raise
            self._read(answer, range(1))
            return dialect
        raise Refusal("the reranker: no known rerank route or form of request is understood", status=404)

    def _calibrated(self, scores: dict[int, float]) -> dict[int, float]:
        """All on the scale 0..1. What was once seen to be logits stays so: a batch of them may lie within 0..1."""
        outside = is_logits(list(scores.values()))
        if self._score_scale == "sigmoid" and outside:
            raise self._upstream.failed("scores outside 0..1", cause="bad_answer")
        self._logits_seen = self._logits_seen or outside
        if self._score_scale == "logit" or (self._score_scale == "auto" and self._logits_seen):
            return {index: sigmoid(score) for index, score in scores.items()}
        return {index: min(1.0, max(0.0, score)) for index, score in scores.items()}

    def _answer(self, scores: Sequence[float | None], model: str) -> RerankScores:
        dialect = self._dialect.name if self._dialect else DIALECTS[0].name
        return RerankScores(scores=tuple(scores), dialect=dialect, model=model, relevance_scale="sigmoid")


async def _all(requests: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, or the first failure, after the others have been called off."""
    tasks = [asyncio.ensure_future(request) for request in requests]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
