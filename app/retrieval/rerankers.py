"""Which reranker a workspace's knobs choose."""

from collections.abc import Callable

from msgspec import Struct

from app.config.knobs import RagConfig
from app.domain.ports import Reranker

RerankerAt = Callable[[str, str], Reranker]
"""The reranker at an address, for a model."""


class RerankerChoice(Struct, frozen=True):
    """`pool` is how many candidates it wants to see at least."""

    reranker: Reranker
    pool: int = 0


class Rerankers:
    """An address in the knobs is stronger than the deployment's own reranker (late interaction, in this process).

    `at` is None where the deployment has switched reranking off.
    """

    def __init__(self, *, own: RerankerChoice | None = None, at: RerankerAt | None = None) -> None:
        self._own, self._at = own, at

    def of(self, config: RagConfig) -> RerankerChoice | None:
        """None when there is none. Late interaction is switched off with its token vectors."""
        if self._at is not None and config.rerank_url is not None:
            return RerankerChoice(self._at(config.rerank_url, config.rerank_model))
        return None if config.late_interaction == "off" else self._own
