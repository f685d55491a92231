"""From an installed weights file to a running encoder; slow things are done once and kept in the cache folder."""

from pathlib import Path

from app.clients.local_model.cache import GraphCache
from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.graph import BUILDER_VERSION, build_graph
from app.clients.local_model.q4_file import Q4File
from app.clients.local_model.session import OnnxSession, runtime_version
from app.clients.local_model.token_rows import load_token_mean
from app.clients.local_model.weights import WEIGHTS_SHA256, locate_weights, verify_weights
from app.domain.vectors import EmbeddingModel

VECTORS_VERSION = 1
"""Raise it when the same text no longer gives comparable vectors: tokenizer, pooling, token mean."""


def model_of(encoder: E5Encoder) -> EmbeddingModel:
    """What the service must know of this model. No single cosine separates relevant from irrelevant here."""
    return EmbeddingModel(
        name="multilingual-e5-small-q4",
        version=f"{WEIGHTS_SHA256[:8]}.{VECTORS_VERSION}",
        dimension=encoder.dimension,
        max_input_tokens=encoder.max_tokens,
        weights_sha256=WEIGHTS_SHA256,
        min_score=None,
        late_interaction=True,
    )


def load_encoder(*, cache_dir: Path, threads: int) -> E5Encoder:
    """About 0.6 s with a warm cache. Raises ModelUnavailable when the weights are missing or have other bytes."""
    weights, session = load_network(cache_dir=cache_dir, threads=threads)
    return E5Encoder(weights=weights, session=session, token_mean=load_token_mean(weights.sizes.hidden))


def load_network(*, cache_dir: Path, threads: int) -> tuple[Q4File, OnnxSession]:
    """The verified weights and their graph, built when the cache has none."""
    path = locate_weights()
    cache = GraphCache(cache_dir, key=f"{WEIGHTS_SHA256[:12]}-{BUILDER_VERSION}-{runtime_version()}")
    stamp = verify_weights(path, trusted=cache.verified_weights)
    weights = Q4File.open(path)
    graph = cache.graph()
    if graph is None or stamp != cache.verified_weights:
        graph = graph or build_graph(weights)
        cache.store(weights=stamp, graph=graph)
    return weights, OnnxSession(graph, threads=threads)
