"""`/v1/search`."""

import asyncio
from typing import Annotated, Any

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, SkipValidation

from app.api.access import SEARCH
from app.api.bodies import SearchBatch, SearchBody
from app.api.examples import SEARCH_ANSWER, SEARCH_REQUEST
from app.api.openapi import answer, problems
from app.api.problems import problem_of
from app.api.services import Services
from app.api.views import BatchAnswer, BatchEntry
from app.domain.documents import DEFAULT_WORKSPACE
from app.domain.errors import KroshkaError
from app.domain.search import SearchResult

CONCURRENT_SEARCHES = 4

Body = Annotated[SearchBody, BodyKwarg(media_type=RequestEncodingType.JSON, examples=[Example(value=SEARCH_REQUEST)])]
BatchBody = Annotated[
    SearchBatch,
    BodyKwarg(media_type=RequestEncodingType.JSON, examples=[Example(value={"searches": [SEARCH_REQUEST]})]),
]


def _responses() -> dict[int, ResponseSpec]:
    return {200: answer(SearchResult, "Hits, best first", SEARCH_ANSWER)} | problems(404, body=True)


class SearchController(Controller):
    """Cited passages."""

    path = "/v1/search"
    tags = ("search",)

    @post(operation_id="search", opt={"scope": SEARCH}, status_code=200, responses=_responses())
    async def search(self, services: NamedDependency[SkipValidation[Services]], data: Body) -> SearchResult:
        """Passages with their breadcrumbs and every score that they earned."""
        return await services.search.search(data.to_query(DEFAULT_WORKSPACE))

    @post("/batch", operation_id="searchBatch", opt={"scope": SEARCH}, status_code=200, responses=problems(body=True))
    async def batch(self, services: NamedDependency[SkipValidation[Services]], data: BatchBody) -> BatchAnswer:
        """Up to 32 searches. One that fails has its problem in its place and does not stop the others."""
        places = asyncio.Semaphore(CONCURRENT_SEARCHES)

        async def entry(body: SearchBody) -> BatchEntry:
            async with places:
                return await _entry(services, body)

        return BatchAnswer(results=tuple(await asyncio.gather(*(entry(body) for body in data.searches))))


@post(
    "/_api/knowledge/search",
    operation_id="knowledgeSearch",
    opt={"scope": SEARCH},
    status_code=200,
    responses=_responses(),
    tags=["search"],
)
async def knowledge_search(services: NamedDependency[SkipValidation[Services]], data: Body) -> SearchResult:
    """The first deployment's route (`{query, collectionId, topK}`), with the same answer as `/v1/search`."""
    return await services.search.search(data.to_query(DEFAULT_WORKSPACE))


async def _entry(services: Services, body: SearchBody) -> BatchEntry:
    try:
        result = await services.search.search(body.to_query(DEFAULT_WORKSPACE))
    except KroshkaError as error:
        problem: Any = problem_of(error)
        return BatchEntry(status=problem.status, problem=problem)
    return BatchEntry(status=200, result=result)
