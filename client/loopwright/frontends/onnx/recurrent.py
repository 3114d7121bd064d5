"""Recurrent layers of ONNX models, unrolled. The products of inputs and weights are one for all steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import relax

from loopwright.frontends.onnx.loops import element, stack, steps
from loopwright.frontends.onnx.node import Converter, Node, constant, extents
from loopwright.frontends.onnx.products import product

_ACTIVATIONS = {"Relu": relax.op.nn.relu, "Sigmoid": relax.op.sigmoid, "Tanh": relax.op.tanh}
_OF_GATES = 2
"""Activations whose argument `clip` limits. The third, of the cell of LSTM, is none of them, as in ONNX Runtime."""
_BACKWARD = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
"""Whether a layer goes from the last step to the first, for each of its directions."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """One direction: ``hidden`` (hidden, gates x hidden), with its ``bias``, is what states are multiplied by."""

    node: Node
    hidden: Any
    bias: Any
    peepholes: Any
    activations: list[Callable[[Any], Any]]

    def product(self, state: Any) -> Any:
        """Return the part of the gates that the state gives."""
        result = product(self.node, state, self.hidden)
        return result if self.bias is None else self.node.emit(relax.op.add(result, self.bias))

    def parts(self, value: Any, count: int) -> list[Any]:
        """Return the last axis in equal parts."""
        both = self.node.emit(relax.op.split(value, count, axis=-1))
        return [self.node.emit(both[place]) for place in range(count)]


_Cell = Callable[[_Layer, Any, list[Any]], list[Any]]
"""From the gates' part that a step's input gives, and the states before the step, to the states behind it."""


def _simple(layer: _Layer, part: Any, states: list[Any]) -> list[Any]:
    (activation,) = layer.activations
    return [layer.node.emit(activation(relax.op.add(part, layer.product(states[0]))))]


def _gru(layer: _Layer, part: Any, states: list[Any]) -> list[Any]:
    """Gates are update, reset and hidden."""
    sigma, tanh = layer.activations
    (state,) = states
    emit = layer.node.emit
    part_z, part_r, part_h = layer.parts(part, 3)
    known_z, known_r, known_h = layer.parts(layer.product(state), 3)
    update = emit(sigma(relax.op.add(part_z, known_z)))
    reset = emit(sigma(relax.op.add(part_r, known_r)))
    if layer.node.attributes.get("linear_before_reset", 0):
        known = emit(relax.op.multiply(reset, known_h))
    else:
        *_, known = layer.parts(layer.product(emit(relax.op.multiply(reset, state))), 3)
    candidate = emit(tanh(relax.op.add(part_h, known)))
    change = emit(relax.op.multiply(update, relax.op.subtract(state, candidate)))
    return [emit(relax.op.add(candidate, change))]


def _lstm(layer: _Layer, part: Any, states: list[Any]) -> list[Any]:
    """Gates are input, output, forget and cell; peepholes are of input, output and forget."""
    sigma, tanh, last = layer.activations
    state, memory = states
    emit = layer.node.emit
    enter, leave, keep, candidate = layer.parts(emit(relax.op.add(part, layer.product(state))), 4)
    if layer.peepholes is not None:
        of_enter, of_leave, of_keep = layer.parts(layer.peepholes, 3)
        enter = emit(relax.op.add(enter, relax.op.multiply(of_enter, memory)))
        keep = emit(relax.op.add(keep, relax.op.multiply(of_keep, memory)))
    kept = emit(relax.op.multiply(sigma(keep), memory))
    memory = emit(relax.op.add(kept, relax.op.multiply(sigma(enter), tanh(candidate))))
    if layer.peepholes is not None:
        leave = emit(relax.op.add(leave, relax.op.multiply(of_leave, memory)))
    return [emit(relax.op.multiply(sigma(leave), last(memory))), memory]


def _limited(node: Node, name: str) -> Callable[[Any], Any]:
    """Return an activation, whose argument is limited if the node has a bound."""
    activation, bound = _ACTIVATIONS[name], node.attributes.get("clip")
    return activation if bound is None else lambda data: activation(relax.op.clip(data, -bound, bound))


def _within(node: Node, count: int) -> Callable[[int, Any, Any], Any]:
    """Return a function of a step and two values: the first in rows whose sequence has that step, else the second."""
    lengths = node.inputs[4]
    known = None if lengths is None else constant(lengths)
    if lengths is None or (known is not None and (known == count).all()):
        return lambda step, value, other: value
    column = node.emit(relax.op.reshape(lengths, [-1, 1]))

    def select(step: int, value: Any, other: Any) -> Any:
        return node.emit(relax.op.where(node.emit(relax.op.less(relax.const(step, "int32"), column)), value, other))

    return select


def _recurrent(cell: _Cell, activations: list[str], initial: tuple[int, ...]) -> Converter:
    """Return the converter of a layer: its activations unless it names others, and which inputs its states are."""

    def convert(node: Node) -> Any:
        if node.attributes.get("input_forget", 0):
            raise ValueError("with input_forget; give it gates of their own")
        backward = _BACKWARD[node.text("direction", "forward")]
        names = [bytes(name).decode() for name in node.attributes.get("activations", ())] or activations * len(backward)
        if unknown := sorted(set(names) - set(_ACTIVATIONS)):
            raise ValueError(f"with the activation {unknown[0]}")
        # Axes of steps and of directions; in an output of all steps the batch is behind both, unless it is first.
        batch_first = int(node.attributes.get("layout", 0))
        data = node.emit(relax.op.permute_dims(node.inputs[0], [1, 0, 2])) if batch_first else node.inputs[0]
        count, batch, _ = extents(data)
        is_active = _within(node, count)
        size, dtype = extents(node.inputs[2])[2], str(data.ty.dtype)
        zeros = node.emit(relax.op.zeros((batch, size), dtype))
        every, final = [], []
        for direction, is_backward in enumerate(backward):
            weights, hidden = (
                node.emit(relax.op.permute_dims(element(node, node.inputs[place], direction))) for place in (1, 2)
            )
            part, bias = product(node, data, weights), None
            if node.inputs[3] is not None:
                biases = node.emit(relax.op.split(element(node, node.inputs[3], direction), 2, axis=0))
                part, bias = node.emit(relax.op.add(part, biases[0])), node.emit(biases[1])
            layer = _Layer(
                node,
                hidden,
                bias,
                None if node.inputs[7] is None else element(node, node.inputs[7], direction),
                [
                    _limited(node, name) if place < _OF_GATES else _ACTIVATIONS[name]
                    for place, name in enumerate(names[direction * len(activations) :][: len(activations)])
                ],
            )
            states = [
                zeros if node.inputs[place] is None else element(node, node.inputs[place], direction, batch_first)
                for place in initial
            ]
            outputs = []
            for step in steps(count)[:: -1 if is_backward else 1]:
                after = cell(layer, element(node, part, step), states)
                states = [is_active(step, new, old) for new, old in zip(after, states, strict=True)]
                outputs.append(is_active(step, after[0], zeros))
            every.append(stack(node, outputs[:: -1 if is_backward else 1], batch_first))
            final.append(states)
        return relax.Tuple(
            [
                stack(node, every, batch_first + 1),
                *(stack(node, list(each), batch_first) for each in zip(*final, strict=True)),
            ]
        )

    return convert


CONVERTERS: dict[str, Converter] = {
    "GRU": _recurrent(_gru, ["Sigmoid", "Tanh"], (5,)),
    "LSTM": _recurrent(_lstm, ["Sigmoid", "Tanh", "Tanh"], (5, 6)),
    "RNN": _recurrent(_simple, ["Tanh"], (5,)),
}
