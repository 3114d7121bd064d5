"""Recurrent layers of ONNX models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from loopwright.codegen.graph.recurrence import ACTIVATIONS, Cell, Recurrence
from loopwright.frontends import recurrent
from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.loops import element, stack
from loopwright.frontends.onnx.node import Converter, Node, constant, dtype_of, extents

_BACKWARD = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
"""Whether a layer goes from the last step to the first, for each of its directions."""


@dataclass(frozen=True, slots=True)
class _Operator:
    """``order`` are the places of the gates as `Cell` has them, and ``initial`` the inputs that are initial states."""

    cell: Cell
    activations: list[str]
    order: list[int]
    initial: tuple[int, ...]

    def convert(self, node: Node) -> Any:
        if node.attributes.get("input_forget", 0):
            raise ValueError("with input_forget; give it gates of their own")
        backward = _BACKWARD[node.text("direction", "forward")]
        names = [bytes(name).decode() for name in node.attributes.get("activations", ())]
        names = names or self.activations * len(backward)
        if unknown := sorted(set(names) - ACTIVATIONS):
            raise ValueError(f"with the activation {unknown[0]}")
        batch_first = bool(node.attributes.get("layout", 0))
        data = node.inputs[0]
        count, batch = extents(data)[:2][:: -1 if batch_first else 1]
        size, dtype = extents(node.inputs[2])[2], dtype_of(data)
        lengths = _lengths(node, count)
        every, final = [], []
        for direction, is_backward in enumerate(backward):
            weights = self._weights(node, direction)
            layer = Recurrence(
                cell=self.cell,
                steps=count,
                batch=batch,
                hidden=size,
                dtype=dtype,
                wide=wide(data),
                activations=tuple(names[direction * len(self.activations) :][: len(self.activations)]),
                limit=node.attributes.get("clip"),
                resets_state=self.cell is Cell.GRU and not node.attributes.get("linear_before_reset", 0),
                is_backward=is_backward,
                batch_first=batch_first,
                has_peepholes=weights.peepholes is not None,
                has_lengths=lengths is not None,
            )
            states = [
                node.emit(relax.op.zeros((batch, size), dtype))
                if node.inputs[place] is None
                else element(node, node.inputs[place], direction, int(batch_first))
                for place in self.initial
            ]
            outputs, *last = recurrent.run(node.importer.bb, layer, weights, data, states, lengths)
            every.append(outputs)
            final.append(last)
        return relax.Tuple(
            [
                stack(node, every, 2 if batch_first else 1),
                *(stack(node, list(each), int(batch_first)) for each in zip(*final, strict=True)),
            ]
        )

    def _weights(self, node: Node, direction: int) -> recurrent.Weights:
        gates = self.cell.gates

        def ordered(value: Any) -> Any:
            """Return rows by gate in the order of the cell's gates."""
            _, *others = extents(value)
            by_gate = node.emit(relax.op.reshape(value, [gates, -1, *others]))
            order = relax.const(np.array(self.order, "int64"))
            taken = node.emit(relax.op.take(by_gate, order, 0, mode="clip"))
            return node.emit(relax.op.reshape(taken, [-1, *others]))

        inputs, hidden = (ordered(element(node, node.inputs[place], direction)) for place in (1, 2))
        input_bias = hidden_bias = None
        if node.inputs[3] is not None:
            both = element(node, node.inputs[3], direction)
            halves = node.emit(relax.op.reshape(both, [2, -1]))
            input_bias, hidden_bias = (ordered(element(node, halves, place)) for place in range(2))
        peepholes = None if node.inputs[7] is None else element(node, node.inputs[7], direction)
        return recurrent.Weights(inputs, hidden, input_bias, hidden_bias, peepholes)


def _lengths(node: Node, count: int) -> Any:
    """Return how many steps the sequences have; None if they have all."""
    lengths = node.inputs[4]
    known = None if lengths is None else constant(lengths)
    return None if known is not None and (known == count).all() else lengths


_OPERATORS = {
    "GRU": _Operator(Cell.GRU, ["Sigmoid", "Tanh"], [1, 0, 2], (5,)),
    "LSTM": _Operator(Cell.LSTM, ["Sigmoid", "Tanh", "Tanh"], [0, 2, 3, 1], (5, 6)),
    "RNN": _Operator(Cell.RNN, ["Tanh"], [0], (5,)),
}

CONVERTERS: dict[str, Converter] = {name: operator.convert for name, operator in _OPERATORS.items()}
