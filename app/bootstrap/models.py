"""The models of a deployment: embedder, reranker, token vectors."""

import hashlib
from contextlib import AsyncExitStack
from typing import Protocol, TypeVar

from msgspec import Struct

from app.config.deployment import Deployment
from app.domain.ports import Embedder, Reranker, TokenCounter, TokenVectorStore
from app.domain.search import RerankerInfo
from app.domain.vectors import EmbeddingModel


class Closing(Protocol):
    """What must be closed at the end."""

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=Closing)


class Models(Struct, frozen=True, kw_only=True):
    """Loaded models. `token_vectors` is there when late interaction is on; `reranker_pool` 0 means no bound."""

    embedder: Embedder
    token_counter: TokenCounter | None = None
    reranker: Reranker | None = None
    reranker_info: RerankerInfo | None = None
    reranker_pool: int = 0
    token_vectors: TokenVectorStore | None = None


async def load_models(deployment: Deployment, stack: AsyncExitStack) -> Models:
    """Loads what EMBEDDER and RERANKER say, and nothing else in its place. Raises ModelUnavailable, Unavailable."""
    embedder, token_counter = await _embedder(deployment, stack)
    if deployment.reranker == "local":
        return _late_interaction(deployment, stack, embedder, token_counter)
    if deployment.reranker == "tei":
        return _cross_encoder(deployment, stack, embedder, token_counter)
    return Models(embedder=embedder, token_counter=token_counter)


async def _embedder(deployment: Deployment, stack: AsyncExitStack) -> tuple[Embedder, TokenCounter | None]:
    # Imported here: onnxruntime takes memory and half a second that a deployment with TEI need not spend.
    if deployment.embedder == "local":
        from app.clients.local_model.embedder import LocalE5Embedder

        local = await LocalE5Embedder.load(cache_dir=deployment.data_dir / "models", threads=deployment.model_threads)
        return _closing(stack, local), local
    if deployment.embedder == "tei":
        from app.clients.tei_embedder import TeiEmbedder

        key = deployment.tei_api_key
        tei = await TeiEmbedder.connect(deployment.tei_embed_url or "", api_key=key.reveal() if key else None)
        return _closing(stack, tei), None
    from app.clients.hash_embedder import HashEmbedder

    return _closing(stack, HashEmbedder()), None


def _late_interaction(
    deployment: Deployment, stack: AsyncExitStack, embedder: Embedder, token_counter: TokenCounter | None
) -> Models:
    from app.clients.late_interaction import LateInteractionReranker
    from app.clients.token_vectors import SqliteTokenVectorStore

    token_vectors = SqliteTokenVectorStore(deployment.data_dir / "token-vectors" / f"{_file_name(embedder.model)}.db")
    stack.push_async_callback(token_vectors.aclose)
    reranker = LateInteractionReranker(token_vectors=token_vectors, model_name=embedder.model.name)
    return Models(
        embedder=embedder,
        token_counter=token_counter,
        reranker=_closing(stack, reranker),
        reranker_info=RerankerInfo(dialect="late_interaction", model=embedder.model.name),
        reranker_pool=20,
        token_vectors=token_vectors,
    )


def _cross_encoder(
    deployment: Deployment, stack: AsyncExitStack, embedder: Embedder, token_counter: TokenCounter | None
) -> Models:
    from app.clients.rerank import HttpReranker

    key, url = deployment.tei_api_key, deployment.tei_rerank_url or ""
    reranker = HttpReranker(url=url, api_key=key.reveal() if key else None)
    return Models(
        embedder=embedder,
        token_counter=token_counter,
        reranker=_closing(stack, reranker),
        reranker_info=RerankerInfo(dialect="tei", model=""),
    )


def _file_name(model: EmbeddingModel) -> str:
    """One file for each model: their token vectors cannot be compared."""
    return hashlib.sha256(model.key.encode()).hexdigest()[:16]


def _closing(stack: AsyncExitStack, part: C) -> C:
    stack.push_async_callback(part.aclose)
    return part
