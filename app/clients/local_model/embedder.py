"""multilingual-e5-small in our own process, as the port's Embedder and TokenCounter.

Queries and passages have a thread each on one session. Measured with two cores, passages of 260 tokens and queries of
15: a query takes 6 ms alone; behind a passage in one queue p95 was 95 ms, on its own thread 20 ms, with as many
passages a second. Passages are run one by one, since batches gain nothing (see graph.py); callers take turns.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.lane import Lane
from app.clients.local_model.loading import load_encoder, model_of
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable
from app.domain.vectors import EmbeddingModel, PassageVectors, QueryVectors


class LocalE5Embedder:
    """Also counts tokens. Every method raises EmbedderUnavailable after `aclose`."""

    def __init__(self, *, encoder: E5Encoder) -> None:
        self._encoder: E5Encoder | None = encoder
        self._model = model_of(encoder)
        self._queries, self._passages = Lane("embed-queries"), Lane("embed-passages")

    @classmethod
    async def load(cls, *, cache_dir: Path, threads: int = 2) -> "LocalE5Embedder":
        """Loads in a thread: 0.8 s, or 2 s when `cache_dir` has no graph yet. `threads` work on one text.

        Raises ModelUnavailable when the weights are not installed or not the pinned bytes.
        """
        return cls(encoder=await asyncio.to_thread(load_encoder, cache_dir=cache_dir, threads=threads))

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed_query(self, text: str, deadline: Deadline) -> QueryVectors:
        """Vectors of a query, cut at 512 tokens. Waits for other queries only."""
        return await self._queries.run(partial(self._loaded().encode_query, text), deadline)

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        """Vectors in the texts' order. Nothing is embedded when a text is too long: LimitExceeded names the first."""
        encoder = self._loaded()
        all_tokens = await self._passages.run(partial(encoder.checked_passage_tokens, texts), deadline)
        passages = [await self._passages.run(partial(encoder.encode_passage, ids), deadline) for ids in all_tokens]
        dense = np.array([passage.dense for passage in passages], dtype=np.float32)
        return PassageVectors(
            dense=dense.reshape(len(passages), self._model.dimension),
            tokens=tuple(passage.tokens for passage in passages),
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a passage, with prefix and special tokens. Blocks; safe in any thread."""
        encoder = self._loaded()
        return [encoder.count_passage_tokens(text) for text in texts]

    async def aclose(self) -> None:
        """Ends both threads and lets go of the model; may be called twice."""
        self._encoder = None
        await asyncio.gather(self._queries.aclose(), self._passages.aclose())

    def _loaded(self) -> E5Encoder:
        if self._encoder is None:
            raise EmbedderUnavailable("the embedder has been closed", cause="refused")
        return self._encoder
