"""One upstream over HTTP: keep-alive pool, deadline, retries, circuit; its failures in the domain's words.

No message repeats an address, a key or the body of an answer: bodies of validation errors quote the text that was sent.
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
from msgspec import Struct

from app.clients.circuit import CircuitBreaker, Verdict
from app.domain.deadline import Deadline
from app.domain.errors import InvalidInput, Unavailable, UpstreamRefused

KEEPALIVE_EXPIRY_S = 15.0  # below the idle time after which proxies usually hang up
MAX_CONNECT_S = 5.0
_READ_OF_BODY = 4_000  # characters of an error's body that are looked at
TEI_ERROR_TYPES = frozenset({"unhealthy", "backend", "overloaded", "validation", "tokenizer", "empty"})
_RETRIED_STATUSES = frozenset({502, 503, 504})
_DEPLOYMENT_STATUSES = frozenset({401, 403, 404, 405})
_WRONG_MODEL = {424: ("is not a",), 400: ("does not support rerank",), 501: ("not support", "--rerank")}
"""What TEI, vLLM and llama.cpp say when another sort of model is loaded, by status, in lower case."""


class Refusal(UpstreamRefused):
    """A status that trying again will not change.

    `kind` is TEI's error type in lower case, empty when the body is not TEI's. `body` is for telling dialects apart
    and must not be shown. `wrong_model` means that another sort of model is served at the address.
    """

    def __init__(self, message: str, *, status: int, kind: str = "", body: str = "", wrong_model: bool = False) -> None:
        super().__init__(message, cause=_cause_of(status))
        self.status, self.kind, self.body, self.wrong_model = status, kind, body, wrong_model

    @property
    def is_of_deployment(self) -> bool:
        """Whether every request would be refused so, whatever its text."""
        return self.wrong_model or self.status in _DEPLOYMENT_STATUSES or self.status < 400


class Retries(Struct, frozen=True, kw_only=True):
    """`attempts` counts the first one. Waits are `uniform(0, min(max_s, base_s × 2^n))` seconds (full jitter)."""

    attempts: int = 4
    base_s: float = 0.1
    max_s: float = 2.0

    def delay_s(self, attempt: int, rng: random.Random) -> float:
        return rng.uniform(0.0, min(self.max_s, self.base_s * 2.0 ** min(attempt - 1, 16)))


class UpstreamCall(Struct, frozen=True, kw_only=True):
    """One attempt in numbers. `result` is `ok` or a cause; `path` is the route without the address."""

    path: str
    result: str
    seconds: float


class Failure(Struct, frozen=True, kw_only=True):
    """A failed attempt that may pass; `attempts` is how many may be made at all."""

    message: str
    cause: str
    attempts: int
    retry_after_s: float = 0.0


class Upstream:
    """Speaks to one base address. `name` begins every message; `unavailable` is the role's own error."""

    def __init__(
        self,
        *,
        name: str,
        base_url: str,
        api_key: str | None,
        unavailable: type[Unavailable],
        retries: Retries,
        fair_wait_s: float = 0.5,
        rng: random.Random | None = None,
        observer: Callable[[UpstreamCall], None] | None = None,
    ) -> None:
        """A time-out speaks against the upstream only if it had `fair_wait_s`: callers choose their deadlines."""
        self.name, self._unavailable, self._retries = name, unavailable, retries
        self._fair_wait_s, self._rng, self._observer = fair_wait_s, rng or random.SystemRandom(), observer
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            # Deadlines bound every call as a whole; only a host that swallows packets needs a bound of its own.
            timeout=httpx.Timeout(None, connect=MAX_CONNECT_S),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE_EXPIRY_S),
        )

    async def aclose(self) -> None:
        """May be called twice."""
        await self._client.aclose()

    def failed(self, message: str, *, cause: str, retry_after_s: float = 1.0) -> Unavailable:
        """The role's error, to be raised."""
        return self._unavailable(f"{self.name}: {message}", cause=cause, retry_after_s=retry_after_s)

    @asynccontextmanager
    async def operation(self, circuit: CircuitBreaker, deadline: Deadline) -> AsyncIterator[None]:
        """One piece of work inside the deadline, whose end the circuit hears of."""
        given_s = deadline.remaining_s()
        if self._client.is_closed:
            raise self.failed("the client has been closed", cause="refused")
        if given_s <= 0.0:
            raise self.failed("no time was left", cause="timeout")
        admission = circuit.enter()
        if admission is None:
            raise self.failed(
                "is left alone after failures", cause="circuit_open", retry_after_s=max(1.0, circuit.remaining_s())
            )
        verdict = Verdict.NONE
        try:
            async with asyncio.timeout(given_s):
                yield
            verdict = Verdict.GOOD
        except TimeoutError:
            verdict = self._blame(given_s)
            raise self.failed(f"no answer within {given_s:.3g} s", cause="timeout") from None
        except Unavailable as error:
            verdict = self._blame(given_s) if error.cause == "timeout" else Verdict.BAD
            raise
        except Refusal as error:
            verdict = Verdict.PERMANENT if error.is_of_deployment else Verdict.GOOD
            raise
        except InvalidInput:
            verdict = Verdict.GOOD
            raise
        finally:
            circuit.leave(admission, verdict)

    def _blame(self, given_s: float) -> Verdict:
        return Verdict.BAD if given_s >= self._fair_wait_s else Verdict.NONE

    async def get(self, path: str, deadline: Deadline) -> bytes:
        return await self._send("GET", path, b"", deadline)

    async def post(self, path: str, body: bytes, deadline: Deadline) -> bytes:
        """The answer's body. Raises the role's Unavailable, or Refusal. All routes are pure: all may retry."""
        return await self._send("POST", path, body, deadline)

    async def _send(self, method: str, path: str, body: bytes, deadline: Deadline) -> bytes:
        for attempt in itertools.count(1):
            outcome = await self._observed(method, path, body)
            if isinstance(outcome, bytes):
                return outcome
            delay_s = max(outcome.retry_after_s, self._retries.delay_s(attempt, self._rng))
            if attempt >= min(outcome.attempts, self._retries.attempts) or delay_s >= deadline.remaining_s():
                raise self.failed(outcome.message, cause=outcome.cause, retry_after_s=max(1.0, outcome.retry_after_s))
            await asyncio.sleep(delay_s)
        raise AssertionError("counting has no end")

    async def _observed(self, method: str, path: str, body: bytes) -> bytes | Failure:
        began, result = time.perf_counter(), "timeout"  # what stands when the deadline cancels the attempt
        try:
            outcome = await self._attempt(method, path, body)
            result = outcome.cause if isinstance(outcome, Failure) else "ok"
            return outcome
        except UpstreamRefused as error:
            result = error.cause
            raise
        finally:
            if self._observer is not None:
                self._observer(UpstreamCall(path=path, result=result, seconds=time.perf_counter() - began))

    async def _attempt(self, method: str, path: str, body: bytes) -> bytes | Failure:
        try:
            response = await self._client.request(
                method, path, content=body or None, headers={"Content-Type": "application/json"} if body else None
            )
        except httpx.TimeoutException:
            return Failure(message="no connection in time", cause="timeout", attempts=1)
        except httpx.ConnectError:
            return Failure(message="the connection was refused", cause="refused", attempts=self._retries.attempts)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            return Failure(message="the connection was reset", cause="reset", attempts=self._retries.attempts)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Failure(message=f"{type(error).__name__}", cause="bad_answer", attempts=1)
        if response.is_success:
            return response.content
        return self._failure(response)

    def _failure(self, response: httpx.Response) -> Failure:
        """What may pass is returned, what will not is raised as a Refusal."""
        status, kind, body = response.status_code, error_type(response.content), response.text[:_READ_OF_BODY]
        message = f"HTTP {status}{f' ({kind})' if kind else ''}"
        wrong_model = any(words in body.lower() for words in _WRONG_MODEL.get(status, ()))
        if status == 429:
            wait_s = _retry_after_s(response)
            return Failure(message=message, cause="overloaded", attempts=self._retries.attempts, retry_after_s=wait_s)
        if status == 424 and not wrong_model:
            return Failure(message=message, cause="status_4xx", attempts=2)
        if status >= 500 and not wrong_model:
            attempts, wait_s = (self._retries.attempts if status in _RETRIED_STATUSES else 1), _retry_after_s(response)
            return Failure(message=message, cause="status_5xx", attempts=attempts, retry_after_s=wait_s)
        raise Refusal(
            f"{self.name}: {message}{', another sort of model' if wrong_model else ''}",
            status=status,
            kind=kind,
            body=body,
            wrong_model=wrong_model,
        )


def _cause_of(status: int) -> str:
    return f"status_{status // 100}xx" if 400 <= status < 600 else "bad_answer"


def error_type(body: bytes) -> str:
    """TEI's `error_type` (or `type` of its OpenAI route) in lower case; empty when the body is somebody else's."""
    fields = json_object(body)
    value = fields.get("error_type", fields.get("type"))
    kind = value.lower() if isinstance(value, str) else ""
    return kind if kind in TEI_ERROR_TYPES else ""


def json_object(body: bytes) -> dict[str, Any]:
    """The object in the body; {} when there is none."""
    value = json_value(body)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def json_value(body: bytes) -> object:
    """Any JSON, also with bare NaN and Infinity, which strict readers refuse; None when it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _retry_after_s(response: httpx.Response) -> float:
    """Seconds of a Retry-After header (TEI sends none, proxies do); 0 for none or a date."""
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0


def base_url(url: str, *routes: str) -> str:
    """The address without a trailing slash and without what people copy with it: `/v1`, `/rerank`, `/v1/rerank`."""
    bare = url.strip().rstrip("/")
    for suffix in (*routes, "/v1", "/v2"):
        bare = bare.removesuffix(suffix).rstrip("/")
    return bare


def clean_text(text: str) -> str:
    """Lone surrogates cannot be sent as UTF-8: they become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
