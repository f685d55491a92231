"""What is asked of a search and what counts as an answer: the words that data sets, golden sets and runs share."""

from collections.abc import Callable
from uuid import UUID

from msgspec import Struct

from app.domain.search import Hit


class Judgement(Struct, frozen=True):
    """A unit (document or section) that answers a question. `grade` from 1; 0 is judged and found irrelevant."""

    unit: str
    grade: int = 1


class Question(Struct, frozen=True, kw_only=True):
    """A question with its judgements; none at all for a question that the corpus cannot answer.

    `collection_ids` narrows this question's search; empty means those of the whole run.
    """

    id: str
    text: str
    judgements: tuple[Judgement, ...] = ()
    collection_ids: tuple[UUID, ...] = ()

    @property
    def is_answerable(self) -> bool:
        return any(judgement.grade > 0 for judgement in self.judgements)


UnitOf = Callable[[Question, Hit], str]
"""The unit that a hit stands for. Hits of one unit collapse into the best of them before anything is measured."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a search gave for one question.

    `units` are the collapsed hits, best first. `latency_ms` is the wall time that the caller waited; `stages_ms` what
    the service says of its parts. `reranked` counts hits with a reranker's score. The best scores are the largest of
    all hits, None where no hit has that score.
    """

    question_id: str
    units: tuple[str, ...]
    outcome: str
    latency_ms: float
    stages_ms: tuple[tuple[str, float], ...] = ()
    degraded: tuple[tuple[str, str], ...] = ()
    reranked: int = 0
    best_cosine: float | None = None
    best_lexical: float | None = None
    best_rerank: float | None = None


def collapse(units: list[str]) -> tuple[str, ...]:
    """Each unit once, at its best place: a document with many chunks among the hits takes one rank."""
    return tuple(dict.fromkeys(units))
