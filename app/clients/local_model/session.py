"""The one place that knows onnxruntime. It is imported when a model is loaded, not before."""

from typing import Protocol

import numpy as np

from app.clients.local_model.graph import INPUT, OUTPUT
from app.domain.errors import EmbedderUnavailable, ModelUnavailable
from app.domain.vectors import FloatArray


class EncoderSession(Protocol):
    """A loaded graph."""

    def run(self, embeddings: FloatArray) -> FloatArray:
        """Hidden states of one text, shape (tokens, hidden), for its input embeddings of the same shape."""


class OnnxSession:
    """A graph in onnxruntime, on the CPU. May be run by several threads at once."""

    def __init__(self, graph: bytes, *, threads: int) -> None:
        """`threads` work on one text. They sleep while there is nothing to do: spinning would starve the rest of us."""
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as errors

        self._errors = (errors.Fail, errors.RuntimeException, errors.InvalidArgument, errors.EPFail)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        refusals = (*self._errors, errors.InvalidGraph, errors.InvalidProtobuf, errors.NotImplemented)
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except refusals as error:
            raise ModelUnavailable(f"onnxruntime refuses the embedding model: {error}") from error

    def run(self, embeddings: FloatArray) -> FloatArray:
        """Raises EmbedderUnavailable for a failed run, and for an answer of another shape or with a NaN in it."""
        try:
            (hidden,) = self._session.run([OUTPUT], {INPUT: embeddings[None]})
        except self._errors as error:
            raise EmbedderUnavailable(f"the embedding model failed: {error}", cause="bad_answer") from error
        states = np.asarray(hidden, dtype=np.float32)
        if states.shape != (1, *embeddings.shape) or not np.isfinite(states).all():
            raise EmbedderUnavailable("the embedding model gave vectors that cannot be used", cause="bad_answer")
        return states.reshape(embeddings.shape)


def runtime_version() -> str:
    """Part of the graph cache's key."""
    import onnxruntime

    return str(onnxruntime.__version__)
