"""What goes into the network and what is taken from it, seen with a network that answers its own input."""

from pathlib import Path

import numpy as np
import pytest

from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.q4_file import Q4File
from app.domain.errors import EmbedderUnavailable, LimitExceeded
from app.domain.vectors import FloatArray
from tests.support.local_model import TinyModel

BEGIN, END, QUERY, PASSAGE, AB, C = 0, 2, 5, 6, 10, 11


class Echo:
    """Hidden states that are the input embeddings, times `factor`."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = np.float32(factor)

    def run(self, embeddings: FloatArray) -> FloatArray:
        return embeddings * self.factor


@pytest.fixture(scope="module")
def tiny() -> TinyModel:
    return TinyModel()


@pytest.fixture(scope="module")
def weights(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Q4File:
    return Q4File.open(tiny.write(Path(tmp_path_factory.mktemp("tiny")) / "tiny.bin"))


def encoder(weights: Q4File, *, mean: float = 0.0, factor: float = 1.0) -> E5Encoder:
    return E5Encoder(weights=weights, session=Echo(factor), token_mean=np.full(64, mean, np.float32))


def test_queries_and_passages_have_their_own_prefix(weights: Q4File) -> None:
    e5 = encoder(weights)
    assert e5.query_tokens("ab") == [BEGIN, QUERY, AB, END]
    assert e5.passage_tokens("ab c") == [BEGIN, PASSAGE, AB, 4, C, END]
    assert e5.count_passage_tokens("ab c") == 6


def test_the_first_text_above_the_limit_is_named_with_both_numbers(weights: Q4File) -> None:
    e5 = encoder(weights)
    fits = "ab " * 21
    assert e5.count_passage_tokens(fits) == e5.max_tokens == 24
    with pytest.raises(LimitExceeded) as caught:
        e5.checked_passage_tokens(["ab", fits, fits + "ab", fits * 9])
    assert (caught.value.pointer, caught.value.actual, caught.value.limit) == ("/texts/2", 25, 24)


def test_a_query_is_cut_at_the_limit_and_keeps_its_end_token(weights: Q4File) -> None:
    tokens = encoder(weights).query_tokens("ab " * 5_000)
    assert tokens == [BEGIN, QUERY, *[AB] * 21, END]


def test_input_embeddings_are_word_plus_position_plus_type(tiny: TinyModel, weights: Q4File) -> None:
    hidden = encoder(weights).hidden_states([BEGIN, AB, END])
    positions = tiny.vectors["emb.pos"].reshape(tiny.positions, 64)
    expected = tiny.matrices["emb.word"][[BEGIN, AB, END]] + positions[:3] + tiny.vectors["emb.type"]
    np.testing.assert_allclose(hidden, expected, rtol=1e-6)


def test_the_dense_vector_is_the_normalised_mean_of_all_tokens(weights: Q4File) -> None:
    e5 = encoder(weights)
    mean = e5.hidden_states(e5.query_tokens("ab c")).mean(axis=0)
    np.testing.assert_allclose(e5.encode_query("ab c").dense, mean / np.linalg.norm(mean), rtol=1e-5)


def test_token_vectors_are_those_of_the_content_without_the_mean(weights: Q4File) -> None:
    e5 = encoder(weights, mean=0.25)
    query = e5.encode_query("ab c")
    assert query.tokens is not None
    states = e5.hidden_states(e5.query_tokens("ab c"))[2:-1] - 0.25
    np.testing.assert_allclose(query.tokens, states / np.linalg.norm(states, axis=1, keepdims=True), atol=1e-6)
    passage = e5.encode_passage(e5.passage_tokens("ab c"))
    rows = e5.hidden_states(e5.passage_tokens("ab c"))[2:-1] - 0.25
    assert passage.tokens.dtype == np.int8
    np.testing.assert_allclose(passage.tokens / 127, rows / np.abs(rows).max(axis=1, keepdims=True), atol=0.005)


def test_a_text_without_a_token_still_has_a_dense_vector(weights: Q4File) -> None:
    query = encoder(weights).encode_query(" \0 ")
    assert query.tokens is not None
    assert query.tokens.shape == (0, 64)
    assert np.linalg.norm(query.dense) == pytest.approx(1, abs=1e-6)


def test_a_vector_without_direction_is_refused(weights: Q4File) -> None:
    with pytest.raises(EmbedderUnavailable, match="without direction"):
        encoder(weights, factor=0.0).encode_query("ab")
