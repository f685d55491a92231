import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from app.domain.search import Hit, SearchQuery, SearchResult
from app.evaluation.datasets import document_unit, source_name_of
from app.evaluation.load import SearchLoad
from app.evaluation.questions import Judgement, Question
from app.evaluation.report import LoadView
from app.evaluation.runner import Conditions
from tests.support.aio import run
from tests.support.evaluation import NAMES, ScriptedSearch, hit

QUESTIONS = [Question(id=text, text=text, judgements=(Judgement("document:d1"),)) for text in "ab"]
CONDITIONS = Conditions(unit_of=document_unit, workspace_id=NAMES, collection_ids=(NAMES,))


class CountedSearch(ScriptedSearch):
    """Tells when it was asked often enough."""

    def __init__(self, hits: Mapping[str, Sequence[Hit]], *, enough: int) -> None:
        super().__init__(hits)
        self._enough, self.asked_enough = enough, asyncio.Event()

    async def search(self, query: SearchQuery) -> SearchResult:
        result = await super().search(query)
        if len(self.queries) >= self._enough:
            self.asked_enough.set()
        return result


def searched(hits: Mapping[str, Sequence[Hit]], *, searches: int) -> tuple[ScriptedSearch, LoadView | None]:
    """The load's view when it was stopped after so many searches, each of which took 20 ms by the clock."""
    search = CountedSearch(hits, enough=searches)

    def instants() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += 0.02

    async def work() -> LoadView | None:
        times = instants()
        load = SearchLoad(
            search=search, questions=QUESTIONS, conditions=CONDITIONS, pause_s=0, clock=lambda: next(times)
        )
        running = asyncio.create_task(load.run())
        await search.asked_enough.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return load.view()

    view = run(work())
    return search, view


def test_questions_are_asked_in_turn_where_the_evaluation_looks() -> None:
    search, _ = searched({"a": [hit(source_name_of("d1"))]}, searches=3)

    assert [query.text for query in search.queries[:3]] == ["a", "b", "a"]
    assert {(query.workspace_id, query.collection_ids) for query in search.queries} == {(NAMES, (NAMES,))}


def test_only_searches_that_found_something_are_timed() -> None:
    search, view = searched({"a": [hit(source_name_of("d1"))]}, searches=4)

    assert view is not None
    assert view.searches == len([query for query in search.queries if query.text == "a"])
    assert (view.p50_ms, view.p95_ms) == (20.0, 20.0)


def test_there_is_no_view_when_nothing_was_found() -> None:
    assert searched({}, searches=2)[1] is None
