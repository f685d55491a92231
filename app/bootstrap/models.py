"""The models of a deployment: embedder, reranker, token vectors."""

import hashlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Protocol, TypeVar

from msgspec import Struct

from app.clients.http import UpstreamCall
from app.clients.rerank.pool import RerankerPool
from app.config.deployment import Deployment
from app.domain.ports import Embedder, TokenCounter, TokenVectorStore
from app.domain.search import RerankerInfo
from app.domain.vectors import EmbeddingModel
from app.observability.metrics import Metrics
from app.retrieval.rerankers import RerankerAt, RerankerChoice, Rerankers

LATE_INTERACTION_POOL = 20
DIALECT_BY_PATH = {"/v1/rerank": "tei-v1", "/v2/rerank": "cohere"}


class Closing(Protocol):
    """What must be closed at the end."""

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=Closing)


class Models(Struct, frozen=True, kw_only=True):
    """Loaded models. `token_vectors` is there with late interaction; `info` tells of the deployment's reranker."""

    embedder: Embedder
    rerankers: Rerankers
    token_counter: TokenCounter | None = None
    info: RerankerInfo | None = None
    token_vectors: TokenVectorStore | None = None


async def load_models(deployment: Deployment, metrics: Metrics, stack: AsyncExitStack) -> Models:
    """Loads what EMBEDDER and RERANKER say, and nothing else in its place. Raises ModelUnavailable, Unavailable."""
    embedder, token_counter = await _embedder(deployment, metrics, stack)
    if deployment.reranker == "none":
        return Models(embedder=embedder, rerankers=Rerankers(), token_counter=token_counter)
    at = _pool(deployment, metrics, stack).at
    if deployment.reranker == "tei":
        info = RerankerInfo(dialect="tei", model="")
        return Models(embedder=embedder, rerankers=Rerankers(at=at), token_counter=token_counter, info=info)
    return _with_late_interaction(deployment, stack, embedder, token_counter, at)


async def _embedder(
    deployment: Deployment, metrics: Metrics, stack: AsyncExitStack
) -> tuple[Embedder, TokenCounter | None]:
    # Imported here: onnxruntime takes memory and half a second that a deployment with TEI need not spend.
    if deployment.embedder == "local":
        from app.clients.local_model.embedder import LocalE5Embedder

        local = await LocalE5Embedder.load(cache_dir=deployment.data_dir / "models", threads=deployment.model_threads)
        return _closing(stack, local), local
    if deployment.embedder == "tei":
        from app.clients.tei_embedder import TeiEmbedder

        tei = await TeiEmbedder.connect(
            deployment.tei_embed_url or "", api_key=_api_key(deployment), observer=_observer(metrics, "embed")
        )
        return _closing(stack, tei), None
    from app.clients.hash_embedder import HashEmbedder

    return _closing(stack, HashEmbedder()), None


def _with_late_interaction(
    deployment: Deployment,
    stack: AsyncExitStack,
    embedder: Embedder,
    token_counter: TokenCounter | None,
    at: RerankerAt,
) -> Models:
    from app.clients.late_interaction import LateInteractionReranker
    from app.clients.token_vectors import SqliteTokenVectorStore

    token_vectors = SqliteTokenVectorStore(deployment.data_dir / "token-vectors" / f"{_file_name(embedder.model)}.db")
    stack.push_async_callback(token_vectors.aclose)
    reranker = LateInteractionReranker(
        token_vectors=token_vectors, model_name=embedder.model.name, pool=LATE_INTERACTION_POOL
    )
    return Models(
        embedder=embedder,
        rerankers=Rerankers(own=RerankerChoice(reranker, LATE_INTERACTION_POOL), at=at),
        token_counter=token_counter,
        info=RerankerInfo(dialect="late_interaction", model=embedder.model.name),
        token_vectors=token_vectors,
    )


def _pool(deployment: Deployment, metrics: Metrics, stack: AsyncExitStack) -> RerankerPool:
    pool = RerankerPool(
        api_key=_api_key(deployment),
        observer=_observer(metrics, "rerank"),
        on_circuit=lambda state: metrics.circuit_changed("rerank", state),
    )
    return _closing(stack, pool)


def _observer(metrics: Metrics, upstream: str) -> Callable[[UpstreamCall], None]:
    def observe(call: UpstreamCall) -> None:
        dialect = DIALECT_BY_PATH.get(call.path, "tei")
        metrics.upstream_answered(upstream, dialect=dialect, result=call.result, seconds=call.seconds)

    return observe


def _api_key(deployment: Deployment) -> str | None:
    return deployment.tei_api_key.reveal() if deployment.tei_api_key else None


def _file_name(model: EmbeddingModel) -> str:
    """One file for each model: their token vectors cannot be compared."""
    return hashlib.sha256(model.key.encode()).hexdigest()[:16]


def _closing(stack: AsyncExitStack, part: C) -> C:
    stack.push_async_callback(part.aclose)
    return part
