"""A server on a real socket that speaks the routes of Text Embeddings Inference 1.9 as we use them.

It counts tokens as words plus two, embeds by hashed n-grams and scores pairs by shared words, so that tests can tell
right answers from wrong ones. Faults are scripted per route; other servers' dialects can be switched on.
"""

import json
import math
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from app.clients.hash_embedder import DIMENSION, hash_vector

SERVED_DIMENSION = DIMENSION


@dataclass(frozen=True)
class Reply:
    """What goes out instead of the real answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reset:
    """The connection is reset without an answer, as by a process that panics."""


@dataclass(frozen=True)
class Hang:
    """No answer until the server is closed."""


@dataclass(frozen=True)
class Late:
    """The real answer, but not at once."""

    delay_s: float


Fault = Reply | Reset | Hang | Late


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self.body))


def tei_error(status: int, kind: str, message: str) -> Reply:
    return Reply(status, json.dumps({"error": message, "error_type": kind}).encode())


OVERLOADED = tei_error(429, "Overloaded", "Model is overloaded")
UNAVAILABLE = tei_error(503, "Unhealthy", "unhealthy")
NOT_FOUND = Reply(404)
TOO_LARGE = Reply(413, b"Failed to buffer the request body: length limit exceeded", "text/plain; charset=utf-8")
MISSING_FIELD = Reply(422, b"Failed to deserialize the JSON body: missing field `texts`", "text/plain; charset=utf-8")


@dataclass
class TeiServer:
    """The switches. `validation_status` is 413 for versions up to 1.8.3.

    `rerank_routes` says which routes rerank: `{"/rerank": "texts"}` is TEI; `documents` as the field stands for the
    others, and `wrapped` for their form of the answer. `logits` makes the scores raw ones.
    """

    model_id: str = "BAAI/bge-m3"
    model_type: dict[str, Any] = field(default_factory=lambda: {"embedding": {"pooling": "cls"}})
    model_sha: str | None = "5617a9f61b028005a4858fdac845db406aefb181"
    api_key: str | None = None
    max_input_length: int = 512
    max_client_batch_size: int = 32
    max_concurrent_requests: int = 512
    payload_limit: int = 2_000_000
    validation_status: int = 422
    serves_info: bool = True
    rerank_routes: dict[str, str] = field(default_factory=lambda: {"/rerank": "texts"})
    wrapped: bool = False
    logits: bool = False
    received: list[Received] = field(default_factory=list)
    url: str = ""
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._always: dict[str, Fault] = {}
        self._lock, self._closing, self._busy = threading.Condition(), threading.Event(), 0

    def fail_next(self, path: str, *faults: Fault) -> None:
        """The next requests of the route get these, one each."""
        with self._lock:
            self._faults[path].extend(faults)

    def always(self, path: str, fault: Fault | None) -> None:
        """Every request of the route gets this; None ends it."""
        with self._lock:
            if fault is None:
                self._always.pop(path, None)
            else:
                self._always[path] = fault

    def requests(self, path: str) -> list[Received]:
        with self._lock:
            return [request for request in self.received if request.path == path]

    def wait_for_requests(self, count: int, *, timeout_s: float = 10.0) -> None:
        """Blocks until so many requests have come in: call it in a thread."""
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.received) >= count, timeout_s)

    def take(self, request: Received) -> Fault | None:
        """Writes the request down and gives the fault that is due."""
        with self._lock:
            self.received.append(request)
            self._lock.notify_all()
            queue = self._faults[request.path]
            return queue.popleft() if queue else self._always.get(request.path)

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """Counts how many requests are worked on at once."""
        with self._lock:
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1

    def hang(self, at_most_s: float = 20.0) -> None:
        self._closing.wait(at_most_s)

    def close(self) -> None:
        self._closing.set()

    def answer(self, request: Received) -> Reply:
        """As TEI would: key, route, body, then the model's own checks."""
        public = request.path == "/health"
        if not public and self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return Reply(401)
        if request.method == "GET":
            return self._get(request.path)
        if request.path != "/embed" and request.path not in self.rerank_routes:
            return NOT_FOUND
        if len(request.body) > self.payload_limit:
            return TOO_LARGE
        if request.headers.get("content-type") != "application/json":
            return Reply(415, b"Expected request with `Content-Type: application/json`", "text/plain")
        try:
            fields = json.loads(request.body)
        except ValueError:
            return Reply(400, b"Failed to parse the request body as JSON", "text/plain; charset=utf-8")
        return self._embed(fields) if request.path == "/embed" else self._rerank(request.path, fields)

    def _get(self, path: str) -> Reply:
        if path == "/health":
            return Reply(200)
        return _ok(self._info()) if path == "/info" and self.serves_info else NOT_FOUND

    def _info(self) -> dict[str, Any]:
        return {
            "model_id": self.model_id,
            "model_sha": self.model_sha,
            "model_dtype": "float16",
            "served_model_name": self.model_id,
            "model_type": self.model_type,
            "max_concurrent_requests": self.max_concurrent_requests,
            "max_input_length": self.max_input_length,
            "max_batch_tokens": 16384,
            "max_batch_requests": None,
            "max_client_batch_size": self.max_client_batch_size,
            "auto_truncate": True,
            "tokenization_workers": 8,
            "version": "1.9.3",
            "sha": "0d124dc",
            "docker_label": "sha-0d124dc",
        }

    def _embed(self, fields: dict[str, Any]) -> Reply:
        if "embedding" not in self.model_type:
            return tei_error(424, "Backend", "Backend error: Model is not an embedding model")
        if "inputs" not in fields:
            return Reply(422, b"Failed to deserialize the JSON body: missing field `inputs`", "text/plain")
        inputs = [fields["inputs"]] if isinstance(fields["inputs"], str) else fields["inputs"]
        if (refusal := self._refusal("inputs", inputs, fields.get("truncate", True))) is not None:
            return refusal
        if any(not text for text in inputs):
            return tei_error(400, "Empty", "Input validation error: `inputs` cannot be empty")
        return _ok([self._vector(text) for text in inputs])

    def _vector(self, text: str) -> list[float]:
        words = text.split()[: self.max_input_length - 2]
        vector = [float(value) for value in hash_vector(" ".join(words) or text, {})]
        return vector if any(vector) else [1.0] + [0.0] * (SERVED_DIMENSION - 1)  # a model has a vector for anything

    def _rerank(self, path: str, fields: dict[str, Any]) -> Reply:
        if "reranker" not in self.model_type:
            return tei_error(424, "Backend", "Backend error: model is not a re-ranker model")
        name = self.rerank_routes[path]
        if name not in fields or "query" not in fields:
            return MISSING_FIELD if name == "texts" else _fastapi_missing(name)
        texts = fields[name]
        if (refusal := self._refusal("texts", texts, fields.get("truncate", True))) is not None:
            return refusal
        pairs = [(index, self._pair_score(fields["query"], text)) for index, text in enumerate(texts)]
        pairs.sort(key=lambda pair: -pair[1])
        if self.wrapped:
            results = [{"index": i, "relevance_score": s, "document": {"text": texts[i]}} for i, s in pairs]
            return _ok({"id": "r-1", "model": fields.get("model", "wrapped-model"), "results": results})
        return _ok([{"index": index, "score": score} for index, score in pairs])

    def _pair_score(self, query: str, text: str) -> float:
        """The share of the query's words that the text holds, as a logit of -4..4 or its sigmoid."""
        words = set(query.lower().split())
        logit = 8.0 * len(words & set(text.lower().split())) / max(1, len(words)) - 4.0
        return logit if self.logits else 1.0 / (1.0 + math.exp(-logit))

    def _refusal(self, name: str, texts: list[str], truncate: bool | None) -> Reply | None:
        if not texts:
            return tei_error(400, "Empty", f"`{name}` cannot be empty")
        if len(texts) > self.max_client_batch_size:
            most = self.max_client_batch_size
            return self._validation(f"batch size {len(texts)} > maximum allowed batch size {most}")
        if len(texts) > self.max_concurrent_requests:
            return OVERLOADED
        longest = max(len(text.split()) + 2 for text in texts)
        if not truncate and longest > self.max_input_length:
            return self._validation(f"`{name}` must have less than {self.max_input_length} tokens. Given: {longest}")
        return None

    def _validation(self, message: str) -> Reply:
        return tei_error(self.validation_status, "Validation", f"Input validation error: {message}")


def reranker_server(**switches: Any) -> TeiServer:
    """Switches of a TEI that serves a reranker."""
    model_type = {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}}
    return TeiServer(**({"model_id": "BAAI/bge-reranker-v2-m3", "model_type": model_type} | switches))


@contextmanager
def serving(server: TeiServer, *, port: int = 0) -> Iterator[TeiServer]:
    """Listens on 127.0.0.1 in a thread of its own; `server.url` is set."""

    class Handler(_Handler):
        tei = server

    with _Listener(("127.0.0.1", port), Handler) as listener:
        server.url = f"http://127.0.0.1:{listener.server_address[1]}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.close()
            listener.shutdown()
            thread.join()


@contextmanager
def refusing_address() -> Iterator[str]:
    """An address at which nothing listens while the block runs: the port is taken, but not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that give up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    tei: TeiServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Silent."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Received(self.command, self.path, headers, body)
        fault = self.tei.take(request)
        with self.tei.occupied():
            if isinstance(fault, Reset):
                self._reset()
            elif isinstance(fault, Hang):
                self.tei.hang()
                self.close_connection = True
            elif isinstance(fault, Reply):
                self._send(fault)
            else:
                self.tei.hang(fault.delay_s if fault else 0.0)
                self._send(self.tei.answer(request))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(reply.body)))
        if reply.body:
            self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def _reset(self) -> None:
        """Linger of zero: closing sends RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def _ok(value: object) -> Reply:
    return Reply(200, json.dumps(value).encode())


def _fastapi_missing(name: str) -> Reply:
    detail = [{"type": "missing", "loc": ["body", name], "msg": "Field required", "input": {}}]
    return Reply(422, json.dumps({"detail": detail}).encode())
