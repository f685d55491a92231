"""Builds the ONNX graph of a BERT encoder whose matrices stay in 4 bits.

One text a run: with no padding there is no mask, a text's vectors do not depend on its neighbours, and a run of
260 tokens costs as much per text as a batch of eight (85 ms), so nothing is lost. `onnx` is imported only here,
when a graph has to be built.
"""

from typing import Any

import numpy as np

from app.clients.local_model.q4_file import BLOCK_VALUES, ByteArray, Q4File

BUILDER_VERSION = 1
"""Goes into the cache's key: raise it when the graph changes."""

INPUT, OUTPUT = "embeddings", "hidden"
_CONTRIB = "com.microsoft"
_INT8_ACTIVATIONS = 4
"""MatMulNBits' accuracy_level. Cosine to float32 activations is .9999; queries are a quarter faster, and the session
takes 45 MB less (with AVX-512, float32 passages would be a fifth faster)."""


def build_graph(weights: Q4File) -> bytes:
    """A serialised model: `embeddings` (1, tokens, hidden) float32 in, `hidden` of the same shape out."""
    from onnx import TensorProto, helper

    builder = _Builder(weights)
    builder.encoder()
    shape: list[str | int | None] = [1, "tokens", weights.sizes.hidden]
    graph = helper.make_graph(
        builder.nodes,
        "encoder",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, shape)],
        builder.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    serialised: bytes = model.SerializeToString()
    return serialised


class _Builder:
    """Collects nodes and constants. Every method returns the name of the value it made."""

    def __init__(self, weights: Q4File) -> None:
        self._weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def encoder(self) -> None:
        sizes = self._weights.sizes
        scale, shift = self._floats("emb.ln.w", sizes.hidden), self._floats("emb.ln.b", sizes.hidden)
        value = self._node("LayerNormalization", [INPUT, scale, shift], "normed", epsilon=sizes.norm_epsilon, axis=-1)
        self._constant("thirds", np.full(3, sizes.hidden, np.int64))
        for number in range(sizes.layers):
            last = number == sizes.layers - 1
            value = self._layer(value, f"l{number}.", OUTPUT if last else f"l{number}.hidden")

    def _layer(self, value: str, prefix: str, output: str) -> str:
        """Self-attention and a feed-forward net, each added to its input and normalised (BERT, post-norm)."""
        sizes = self._weights.sizes
        hidden, inner = sizes.hidden, sizes.feed_forward
        query_key_value = self._linear(value, [prefix + part for part in "qkv"], hidden, hidden, prefix + "qkv")
        parts = [prefix + name for name in ("query", "key", "value")]
        self._nodes("Split", [query_key_value, "thirds"], parts, axis=-1)
        mixed = self._node("MultiHeadAttention", parts, prefix + "mixed", domain=_CONTRIB, num_heads=sizes.heads)
        attended = self._linear(mixed, [prefix + "ao"], hidden, hidden, prefix + "attended")
        value = self._add_and_norm(attended, value, prefix + "aln", prefix + "middle")
        expanded = self._linear(value, [prefix + "fi"], hidden, inner, prefix + "expanded")
        active = self._node("Gelu", [expanded], prefix + "active", domain=_CONTRIB)
        reduced = self._linear(active, [prefix + "fo"], inner, hidden, prefix + "reduced")
        return self._add_and_norm(reduced, value, prefix + "oln", output)

    def _linear(self, value: str, names: list[str], inputs: int, outputs: int, result: str) -> str:
        """`value` times the matrices, side by side, plus their biases."""
        weights = self._weights
        blocks = np.concatenate([weights.q4_blocks(f"{name}.w", outputs, inputs) for name in names])
        bias = np.concatenate([weights.floats(f"{name}.b", outputs) for name in names])
        packed, scales = repack(blocks)
        constants = [
            self._constant(result + ".packed", packed),
            self._constant(result + ".scales", scales),
            self._constant(result + ".bias", bias),
        ]
        return self._node(
            "MatMulNBits",
            [value, constants[0], constants[1], "", "", constants[2]],
            result,
            domain=_CONTRIB,
            K=inputs,
            N=outputs * len(names),
            bits=4,
            block_size=BLOCK_VALUES,
            accuracy_level=_INT8_ACTIVATIONS,
        )

    def _add_and_norm(self, value: str, residual: str, norm: str, result: str) -> str:
        hidden, epsilon = self._weights.sizes.hidden, self._weights.sizes.norm_epsilon
        scale, shift = self._floats(norm + ".w", hidden), self._floats(norm + ".b", hidden)
        inputs = [value, residual, scale, shift]
        return self._node("SkipLayerNormalization", inputs, result, domain=_CONTRIB, epsilon=epsilon)

    def _floats(self, name: str, size: int) -> str:
        return self._constant(name, self._weights.floats(name, size))

    def _constant(self, name: str, values: np.ndarray[Any, Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes(operator, inputs, [output], **attributes)
        return output

    def _nodes(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))


def repack(blocks: ByteArray) -> tuple[ByteArray, np.ndarray[Any, np.dtype[np.float32]]]:
    """Q4_0 blocks, shape (rows, n, 18), as MatMulNBits wants them: packed (rows, n, 16) and scales (rows * n,).

    Q4_0 keeps values 0–15 in low and 16–31 in high nibbles; the operator wants neighbours in one byte. Both are
    unsigned with zero at 8.
    """
    values = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    packed = (values[..., 0::2] | (values[..., 1::2] << 4)).astype(np.uint8)
    scales = blocks[..., :2].copy().view("<f2").astype(np.float32)
    return packed, scales.reshape(-1)
