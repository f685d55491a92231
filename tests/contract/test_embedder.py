"""What every Embedder promises, run on each of them.

To add one: a factory below, an async context manager that gives an Embedder inside the test's event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from app.clients.hash_embedder import HashEmbedder
from app.clients.local_model.embedder import LocalE5Embedder
from app.clients.tei_embedder import TeiEmbedder
from app.domain.deadline import Deadline
from app.domain.errors import InvalidInput, TransientError
from app.domain.ports import Embedder
from tests.support.aio import run
from tests.support.local_model import shared_encoder
from tests.support.tei_server import TeiServer, serving

EmbedderFactory = Callable[[pytest.Config], AbstractAsyncContextManager[Embedder]]
Check = Callable[[Callable[[Embedder], Awaitable[None]]], None]

PASSAGES = (
    "Насос включают при открытом вентиле и давлении не ниже двух бар.",
    "The refund is sent to the card within five working days.",
    "这座图书馆周一闭馆。",
    "ERR_0x80070005: access denied in config.yaml, line 42",
)


@asynccontextmanager
async def local_e5(config: pytest.Config) -> AsyncIterator[Embedder]:
    embedder = LocalE5Embedder(encoder=shared_encoder(config))
    yield embedder
    await embedder.aclose()


@asynccontextmanager
async def hashing(config: pytest.Config) -> AsyncIterator[Embedder]:
    embedder = HashEmbedder()
    yield embedder
    await embedder.aclose()


@asynccontextmanager
async def tei(config: pytest.Config) -> AsyncIterator[Embedder]:
    with serving(TeiServer()) as server:
        embedder = await TeiEmbedder.connect(server.url, api_key=None)
        try:
            yield embedder
        finally:
            await embedder.aclose()


FACTORIES = [
    pytest.param(local_e5, id="local-e5", marks=pytest.mark.model),
    pytest.param(hashing, id="hash"),
    pytest.param(tei, id="tei"),
]


@pytest.fixture(params=FACTORIES)
def check(request: pytest.FixtureRequest) -> Check:
    """Runs a check on a fresh embedder inside one event loop."""
    factory: EmbedderFactory = request.param

    async def story(body: Callable[[Embedder], Awaitable[None]]) -> None:
        async with factory(request.config) as embedder:
            await body(embedder)

    return lambda body: run(story(body))


def soon() -> Deadline:
    return Deadline.after(20.0)


def assert_unit_rows(rows: np.ndarray) -> None:
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=-1), 1.0, atol=1e-5)


def test_a_query_has_one_normalised_vector_of_the_models_dimension(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        vectors = await embedder.embed_query("Когда вернут деньги?", soon())
        assert vectors.dense.shape == (embedder.model.dimension,)
        assert_unit_rows(vectors.dense)

    check(body)


def test_passages_have_a_vector_each_in_the_order_of_the_texts(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        together = await embedder.embed_passages(PASSAGES, soon())
        assert together.dense.shape == (len(PASSAGES), embedder.model.dimension)
        assert_unit_rows(together.dense)
        for index, text in enumerate(PASSAGES):
            alone = await embedder.embed_passages([text], soon())
            assert float(alone.dense[0] @ together.dense[index]) > 0.9999

    check(body)


def test_no_texts_give_no_vectors(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        vectors = await embedder.embed_passages([], soon())
        assert vectors.dense.shape == (0, embedder.model.dimension)
        assert not vectors.tokens

    check(body)


def test_the_same_text_gives_the_same_vector(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        first = await embedder.embed_query("pump pressure", soon())
        second = await embedder.embed_query("pump pressure", soon())
        assert float(first.dense @ second.dense) > 0.99999

    check(body)


def test_a_passage_is_nearest_to_a_query_in_its_own_words(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        passages = await embedder.embed_passages(PASSAGES, soon())
        for index, text in enumerate(PASSAGES):
            query = await embedder.embed_query(text, soon())
            assert int(np.argmax(passages.dense @ query.dense)) == index

    check(body)


def test_token_vectors_come_exactly_when_the_model_promises_them(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        model = embedder.model
        query, passages = await embedder.embed_query("Насос", soon()), await embedder.embed_passages(PASSAGES, soon())
        if not model.late_interaction:
            assert query.tokens is None
            assert passages.tokens is None
            return
        assert query.tokens is not None
        assert passages.tokens is not None
        assert query.tokens.shape[1:] == (model.dimension,)
        assert_unit_rows(query.tokens)
        assert len(passages.tokens) == len(PASSAGES)
        assert {(matrix.dtype, matrix.shape[1]) for matrix in passages.tokens} == {(np.dtype(np.int8), model.dimension)}

    check(body)


def test_a_passage_above_the_limit_is_refused_by_its_place_and_never_cut(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        limit = embedder.model.max_input_tokens
        texts = ["short", "слово " * ((limit or 0) + 10), "short"]
        if limit is None:
            assert len((await embedder.embed_passages(texts, soon())).dense) == 3
            return
        with pytest.raises(InvalidInput) as caught:
            await embedder.embed_passages(texts, soon())
        assert "1" in caught.value.pointer
        assert caught.value.limit == limit

    check(body)


def test_a_query_above_the_limit_is_cut_rather_than_refused(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        vectors = await embedder.embed_query("слово " * 2_000, soon())
        assert_unit_rows(vectors.dense)

    check(body)


def test_odd_characters_are_only_text(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        texts = ["nul \0 inside", "surrogate \ud800 alone", "ﷺ" * 10, "🙂🙃", "\u202eright to left"]
        vectors = await embedder.embed_passages(texts, soon())
        assert np.isfinite(vectors.dense).all()

    check(body)


def test_many_callers_at_once_get_their_own_vectors(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        alone = [await embedder.embed_query(text, soon()) for text in PASSAGES]
        crowd = await asyncio.gather(*(embedder.embed_query(text, soon()) for text in PASSAGES * 3))
        for index, vectors in enumerate(crowd):
            assert float(vectors.dense @ alone[index % len(PASSAGES)].dense) > 0.9999

    check(body)


def test_an_expired_deadline_is_a_transient_error(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        with pytest.raises(TransientError):
            await embedder.embed_query("too late", Deadline.after(-1))
        with pytest.raises(TransientError):
            await embedder.embed_passages(["too late"], Deadline.after(-1))

    check(body)


def test_the_models_key_names_model_version_and_dimension(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        model = embedder.model
        assert model.name
        assert model.version
        assert model.key == f"{model.name}@{model.version}/{model.dimension}"

    check(body)


def test_closing_twice_is_closing_once(check: Check) -> None:
    async def body(embedder: Embedder) -> None:
        await embedder.embed_query("last words", soon())
        await embedder.aclose()
        await embedder.aclose()

    check(body)
