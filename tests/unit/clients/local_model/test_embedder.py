"""The real model: what it says, and how it shares two threads."""

import asyncio
import hashlib
from pathlib import Path

import numpy as np
import pytest

from app.clients.local_model.embedder import LocalE5Embedder
from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.loading import load_encoder
from app.clients.local_model.token_mean import derive_token_mean
from app.clients.local_model.token_rows import load_token_mean
from app.clients.local_model.weights import WEIGHTS_SHA256, locate_weights
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable, InvalidInput
from tests.support.aio import run
from tests.support.local_model import model_cache_dir, shared_encoder

pytestmark = pytest.mark.model

GOLDEN_TEXT = "Клиент не может подключиться к серверу"
GOLDEN_IDS = [0, 41, 1294, 12, 188208, 77, 3150, 969, 13713, 13418, 718, 86798, 105, 2]
GOLDEN_DENSE = [-0.0132, -0.0201, -0.0502, -0.0355, 0.0648, -0.062, 0.0324, 0.0435]


@pytest.fixture(scope="module")
def encoder(pytestconfig: pytest.Config) -> E5Encoder:
    return shared_encoder(pytestconfig)


def soon() -> Deadline:
    return Deadline.after(25.0)


def test_the_pinned_hash_is_that_of_the_installed_file() -> None:
    with locate_weights().open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == WEIGHTS_SHA256


def test_token_ids_and_vector_of_a_known_text(encoder: E5Encoder) -> None:
    """The vector differs a little between processors: activations are rounded to 8 bits by their own kernels."""
    ids = encoder.query_tokens(GOLDEN_TEXT)
    assert ids == GOLDEN_IDS
    np.testing.assert_allclose(encoder.encode_query(GOLDEN_TEXT).dense[:8], GOLDEN_DENSE, atol=0.004)


def test_a_question_finds_its_answer_in_another_language(encoder: E5Encoder) -> None:
    passages = (
        "To reset the password, open Settings and choose Security.",
        "Refunds are sent to the card within five working days.",
        "Boil the noodles for three minutes, then turn the heat off.",
    )
    dense = np.stack([encoder.encode_passage(encoder.passage_tokens(passage)).dense for passage in passages])
    for question, answer in (("Как сбросить пароль?", 0), ("什么时候退款?", 1), ("Сколько варить лапшу?", 2)):
        assert int(np.argmax(dense @ encoder.encode_query(question).dense)) == answer


def test_the_shipped_token_mean_can_be_derived_again(encoder: E5Encoder) -> None:
    derived, shipped = derive_token_mean(encoder), load_token_mean(384)
    assert np.linalg.norm(derived - shipped) / np.linalg.norm(shipped) < 0.01


def test_a_vector_does_not_depend_on_the_texts_around_it(encoder: E5Encoder) -> None:
    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        alone = await embedder.embed_passages([GOLDEN_TEXT], soon())
        among = await embedder.embed_passages(["короткий", GOLDEN_TEXT, "длинный текст " * 60], soon())
        np.testing.assert_array_equal(alone.dense[0], among.dense[1])
        assert alone.tokens is not None
        assert among.tokens is not None
        np.testing.assert_array_equal(alone.tokens[0], among.tokens[1])
        await embedder.aclose()

    run(story())


def test_a_query_does_not_wait_for_the_passages_before_it(encoder: E5Encoder) -> None:
    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        passages = asyncio.create_task(embedder.embed_passages(["текст о насосах " * 60] * 12, soon()))
        await asyncio.sleep(0.05)
        await embedder.embed_query(GOLDEN_TEXT, soon())
        assert not passages.done()
        passages.cancel()
        await asyncio.gather(passages, return_exceptions=True)
        await embedder.aclose()

    run(story())


def test_two_callers_with_passages_take_turns(encoder: E5Encoder) -> None:
    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        many = asyncio.create_task(embedder.embed_passages(["текст о насосах " * 40] * 12, soon()))
        await asyncio.sleep(0.02)
        await embedder.embed_passages(["один"], soon())
        assert not many.done()
        many.cancel()
        await asyncio.gather(many, return_exceptions=True)
        await embedder.aclose()

    run(story())


def test_a_passage_above_512_tokens_is_refused_and_nothing_is_embedded(encoder: E5Encoder) -> None:
    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        with pytest.raises(InvalidInput, match=r"/texts/1: \d{3,} tokens, at most 512 are allowed"):
            await embedder.embed_passages(["ok", "слово " * 600], soon())
        await embedder.aclose()

    run(story())


def test_hostile_text_is_only_text(encoder: E5Encoder) -> None:
    """Texts that crash the distribution's own engine, and others that break tokenizers."""

    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        hostile = ["ﷺ" * 20, "\0" * 500, "\ud800", "\u0301" * 300, "</s><s><mask>", "\u200b\u202e", ""]
        passages = await embedder.embed_passages(hostile, soon())
        assert np.isfinite(passages.dense).all()
        await embedder.embed_query("ﷺ" * 5_000, soon())
        await embedder.aclose()

    run(story())


def test_counting_agrees_with_what_the_model_takes(encoder: E5Encoder) -> None:
    embedder = LocalE5Embedder(encoder=encoder)
    assert embedder.count_tokens([GOLDEN_TEXT, ""]) == [len(encoder.passage_tokens(GOLDEN_TEXT)), 4]
    run(embedder.aclose())


def test_a_closed_embedder_says_so(encoder: E5Encoder) -> None:
    async def story() -> None:
        embedder = LocalE5Embedder(encoder=encoder)
        await embedder.aclose()
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await embedder.embed_query("text", soon())
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await embedder.embed_passages(["text"], soon())
        with pytest.raises(EmbedderUnavailable, match="closed"):
            embedder.count_tokens(["text"])

    run(story())


def test_a_damaged_cache_is_built_again(pytestconfig: pytest.Config, tmp_path: Path, encoder: E5Encoder) -> None:
    for path in model_cache_dir(pytestconfig).iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[: len(content) // 2] if path.suffix == ".onnx" else content)
    again = load_encoder(cache_dir=tmp_path, threads=1)
    np.testing.assert_allclose(
        again.encode_query(GOLDEN_TEXT).dense, encoder.encode_query(GOLDEN_TEXT).dense, atol=1e-4
    )
    sizes = {path.name: path.stat().st_size for path in model_cache_dir(pytestconfig).iterdir()}
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == sizes


def test_loading_happens_off_the_event_loop(pytestconfig: pytest.Config) -> None:
    async def story() -> None:
        loading = asyncio.create_task(LocalE5Embedder.load(cache_dir=model_cache_dir(pytestconfig)))
        turns = 0
        while not loading.done():
            await asyncio.sleep(0.001)
            turns += 1
        embedder = await loading
        assert turns > 5
        assert embedder.model.key == "multilingual-e5-small-q4@1571fc98.1/384"
        assert (embedder.model.max_input_tokens, embedder.model.min_score) == (512, None)
        await embedder.aclose()

    run(story())
