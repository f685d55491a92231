"""Which reranker a workspace's knobs choose."""

from collections.abc import Sequence

from app.config.knobs import RagConfig
from app.domain.deadline import Deadline
from app.domain.ports import RerankCandidate, RerankQuery, RerankScores
from app.retrieval.rerankers import RerankerChoice, Rerankers


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    async def rank(self, query: RerankQuery, candidates: Sequence[RerankCandidate], deadline: Deadline) -> RerankScores:
        return RerankScores(scores=(), dialect=self.name, model="", relevance_scale="raw")

    async def aclose(self) -> None: ...


OWN = RerankerChoice(Named("own"), 20)


def chosen(rerankers: Rerankers, **knobs: object) -> str | None:
    choice = rerankers.of(RagConfig(**knobs))  # type: ignore[arg-type]
    return choice.reranker.name if choice and isinstance(choice.reranker, Named) else None


def both() -> Rerankers:
    return Rerankers(own=OWN, at=lambda url, model: Named(f"{url} {model}"))


def test_the_deployments_own_reranker_serves_who_names_no_other() -> None:
    assert chosen(both()) == "own"


def test_an_address_in_the_knobs_is_stronger_and_brings_its_model() -> None:
    assert chosen(both(), rerank_url="http://tei", rerank_model="m") == "http://tei m"


def test_late_interaction_can_be_switched_off_and_an_address_still_counts() -> None:
    assert chosen(both(), late_interaction="off") is None
    assert chosen(both(), late_interaction="off", rerank_url="http://tei") == "http://tei bge-reranker-v2-m3"


def test_where_reranking_is_off_no_address_switches_it_on() -> None:
    assert chosen(Rerankers(), rerank_url="http://tei") is None
