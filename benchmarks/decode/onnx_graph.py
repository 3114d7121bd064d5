"""The decoder as an ONNX graph, in the operators that ONNX Runtime has for decoders.

They are those that its own tools write: GroupQueryAttention, which rotates, appends to the cache in place and attends;
MatMulNBits; and SkipSimplifiedLayerNormalization. OpenVINO appends to the cache by copies of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.decode.weights import (
    BITS,
    BLOCK,
    EMBEDDING,
    EPSILON,
    HEAD,
    NORM,
    THETA,
    Array,
    Matrix,
    Shape,
    Weights,
    layer,
    nibbles,
)

_MICROSOFT = "com.microsoft"


def write(weights: Weights, path: Path, level: int) -> None:
    """Write the graph; ``level`` is the ``accuracy_level`` of MatMulNBits."""
    onnx.save(_Graph(weights, level).model(), path, save_as_external_data=True, location=f"{path.name}.data")


class _Graph:
    def __init__(self, weights: Weights, level: int) -> None:
        self.weights, self.shape, self.level = weights, weights.shape, level
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def model(self) -> onnx.ModelProto:
        shape = self.shape
        cosines, sines = _angles(shape)
        self._constant("cosines", cosines)
        self._constant("sines", sines)
        self._constant(EMBEDDING, self.weights.arrays[EMBEDDING])
        [hidden] = self._node("Gather", [EMBEDDING, "ids"], axis=0)
        [normed] = self._node(
            "SimplifiedLayerNormalization", [hidden, self._norm(f"{layer(0)}.input_layernorm.weight")], **_NORM
        )
        for n in range(shape.layers):
            attended = self._product(self._attention(n, normed), [f"{layer(n)}.self_attn.o_proj.weight"])
            normed, hidden = self._add_and_norm(hidden, attended, f"{layer(n)}.post_attention_layernorm.weight")
            gate, up = (self._product(normed, [f"{layer(n)}.mlp.{name}_proj.weight"]) for name in ("gate", "up"))
            [sigmoid] = self._node("Sigmoid", [gate])
            [silu] = self._node("Mul", [gate, sigmoid])
            [both] = self._node("Mul", [silu, up])
            following = NORM if n + 1 == shape.layers else f"{layer(n + 1)}.input_layernorm.weight"
            down = self._product(both, [f"{layer(n)}.mlp.down_proj.weight"])
            normed, hidden = self._add_and_norm(hidden, down, following)
        [last] = self._node("Gather", [normed, "last"], axis=1)
        logits = self._product(last, [HEAD])
        self.nodes.append(helper.make_node("Identity", [logits], ["logits"]))
        return self._finished()

    def _attention(self, n: int, rows: str) -> str:
        names = [f"{layer(n)}.self_attn.{name}_proj.weight" for name in ("q", "k", "v")]
        projected = self._product(rows, names)
        inputs = [projected, "", "", f"past_key_{n}", f"past_value_{n}", "before", "total", "cosines", "sines"]
        outputs = [f"attended_{n}", f"present_key_{n}", f"present_value_{n}"]
        heads = {"num_heads": self.shape.heads, "kv_num_heads": self.shape.key_heads}
        self.nodes.append(
            helper.make_node("GroupQueryAttention", inputs, outputs, domain=_MICROSOFT, do_rotary=1, **heads)
        )
        return outputs[0]

    def _product(self, rows: str, names: list[str]) -> str:
        """Multiply with matrices, one behind the other."""
        matrices = [self.weights.matrices[name] for name in names]
        numbers = np.concatenate([each.numbers for each in matrices])
        if self.weights.precision == "float32":
            self._constant(names[0], np.ascontiguousarray(numbers.T))
            return self._node("MatMul", [rows, names[0]])[0]
        scales = np.concatenate([each.scales for each in matrices])
        packed = _packed(Matrix(numbers, scales), BITS[self.weights.precision])
        self._constant(names[0], packed)
        self._constant(f"{names[0]}.scales", scales)
        attributes = {"K": numbers.shape[1], "N": numbers.shape[0], "block_size": BLOCK, "accuracy_level": self.level}
        inputs = [rows, names[0], f"{names[0]}.scales"]
        return self._node("MatMulNBits", inputs, domain=_MICROSOFT, bits=BITS[self.weights.precision], **attributes)[0]

    def _add_and_norm(self, hidden: str, more: str, norm: str) -> tuple[str, str]:
        """Return the normed sum, and the sum."""
        normed, added = f"normed_{len(self.nodes)}", f"added_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                "SkipSimplifiedLayerNormalization",
                [hidden, more, self._norm(norm)],
                [normed, "", "", added],
                domain=_MICROSOFT,
                epsilon=EPSILON,
            )
        )
        return normed, added

    def _norm(self, name: str) -> str:
        self._constant(name, self.weights.arrays[name])
        return name

    def _constant(self, name: str, value: Array) -> None:
        self.constants[name] = numpy_helper.from_array(value, name)

    def _node(self, name: str, inputs: list[str], **attributes: Any) -> list[str]:
        output = f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(name, inputs, [output], **attributes))
        return [output]

    def _finished(self) -> onnx.ModelProto:
        past, present = (
            [1, self.shape.key_heads, room, self.shape.head_size] for room in ("past_room", "present_room")
        )
        inputs = [
            helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"]),
            helper.make_tensor_value_info("last", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("before", TensorProto.INT32, [1]),
            helper.make_tensor_value_info("total", TensorProto.INT32, [1]),
        ]
        outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, self.shape.vocabulary])]
        for n in range(self.shape.layers):
            for kind in ("key", "value"):
                inputs.append(helper.make_tensor_value_info(f"past_{kind}_{n}", TensorProto.FLOAT, past))
                outputs.append(helper.make_tensor_value_info(f"present_{kind}_{n}", TensorProto.FLOAT, present))
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


_NORM = {"epsilon": EPSILON, "axis": -1, "stash_type": 1}


def _packed(matrix: Matrix, bits: int) -> Array:
    """Return numbers as MatMulNBits has them: ``[outputs, blocks, bytes]``, with the zero in the middle."""
    assert matrix.scales is not None
    stored = nibbles(matrix.numbers) if bits == 4 else (matrix.numbers.astype("int16") + 128).astype("uint8")
    return stored.reshape(*matrix.scales.shape, BLOCK * bits // 8)


def _angles(shape: Shape) -> tuple[Array, Array]:
    """Return the cosines and sines of the rotary embedding, ``[capacity, half of a head]``."""
    frequencies = THETA ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    angles = np.arange(shape.capacity)[:, None] * frequencies
    return np.cos(angles).astype("float32"), np.sin(angles).astype("float32")
