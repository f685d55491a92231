"""The graph computes what the formulas of BERT say, checked with a tiny network in plain numpy."""

import math
from pathlib import Path

import numpy as np
import pytest

from app.clients.local_model.graph import build_graph
from app.clients.local_model.q4_file import Q4File
from app.clients.local_model.session import OnnxSession
from app.domain.errors import EmbedderUnavailable, ModelUnavailable
from app.domain.vectors import FloatArray
from tests.support.local_model import TinyModel


def reference(tiny: TinyModel, embeddings: FloatArray) -> FloatArray:
    def norm(rows: FloatArray, name: str) -> FloatArray:
        centred = rows - rows.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + tiny.epsilon)
        return scaled * tiny.vectors[name + ".w"] + tiny.vectors[name + ".b"]

    def linear(rows: FloatArray, name: str) -> FloatArray:
        return rows @ tiny.matrices[name + ".w"].T + tiny.vectors[name + ".b"]

    def heads(rows: FloatArray) -> FloatArray:
        return rows.reshape(len(rows), tiny.heads, -1).transpose(1, 0, 2)

    state = norm(embeddings, "emb.ln")
    for layer in range(tiny.layers):
        prefix = f"l{layer}."
        query, key, value = (heads(linear(state, prefix + part)) for part in "qkv")
        weights = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(tiny.hidden / tiny.heads))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ value
        attended = linear(mixed.transpose(1, 0, 2).reshape(len(state), -1), prefix + "ao")
        state = norm(state + attended, prefix + "aln")
        inner = linear(state, prefix + "fi")
        active = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        state = norm(state + linear(active, prefix + "fo"), prefix + "oln")
    return state


@pytest.fixture(scope="module")
def tiny() -> TinyModel:
    return TinyModel()


@pytest.fixture(scope="module")
def session(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> OnnxSession:
    path = tiny.write(Path(tmp_path_factory.mktemp("tiny")) / "tiny.bin")
    return OnnxSession(build_graph(Q4File.open(path)), threads=1)


@pytest.mark.parametrize("tokens", [1, 2, 7, 23])
def test_hidden_states_are_those_of_the_formulas(tiny: TinyModel, session: OnnxSession, tokens: int) -> None:
    embeddings = np.random.default_rng(tokens).normal(size=(tokens, tiny.hidden)).astype(np.float32)
    hidden, expected = session.run(embeddings), reference(tiny, embeddings)
    assert hidden.shape == expected.shape
    # Activations are rounded to 8 bits inside the matrix products.
    np.testing.assert_allclose(hidden, expected, atol=0.06)
    cosines = (hidden * expected).sum(-1) / np.linalg.norm(hidden, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert cosines.min() > 0.9995


def test_vectors_that_are_no_numbers_are_refused(tiny: TinyModel, session: OnnxSession) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be used") as caught:
        session.run(np.full((3, tiny.hidden), np.nan, np.float32))
    assert caught.value.cause == "bad_answer"


def test_input_of_another_shape_is_an_error_of_ours(session: OnnxSession) -> None:
    with pytest.raises(EmbedderUnavailable, match="failed"):
        session.run(np.zeros((3, 5), np.float32))


@pytest.mark.parametrize("graph", [b"", b"no graph at all"])
def test_bytes_that_are_no_graph_are_refused(graph: bytes) -> None:
    with pytest.raises(ModelUnavailable, match="onnxruntime refuses"):
        OnnxSession(graph, threads=1)
