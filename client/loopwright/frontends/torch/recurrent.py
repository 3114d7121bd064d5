"""Recurrent layers and cells of PyTorch, of which a cell is a layer of one step."""

from __future__ import annotations

from typing import Any

import torch
from tvm import relax

from loopwright.codegen.graph.recurrence import Cell, Recurrence
from loopwright.frontends import recurrent
from loopwright.frontends.torch.node import Converter, Node, extents, wide

_aten = torch.ops.aten

_KINDS = {
    "lstm": (Cell.LSTM, ("Sigmoid", "Tanh", "Tanh")),
    "gru": (Cell.GRU, ("Sigmoid", "Tanh")),
    "rnn_tanh": (Cell.RNN, ("Tanh",)),
    "rnn_relu": (Cell.RNN, ("Relu",)),
}
_LAYERS = (_aten.lstm.input, _aten.gru.input, _aten.rnn_tanh.input, _aten.rnn_relu.input)
_CELLS = (
    _aten.lstm_cell.default,
    _aten.gru_cell.default,
    _aten.rnn_tanh_cell.default,
    _aten.rnn_relu_cell.default,
)


def without_layers(decompositions: Any, program: Any) -> Any:
    """Return a table of decompositions that leaves recurrent layers whole, but those with projections, which are
    decomposed into steps."""
    projected = {node.target for node in program.graph.nodes if node.target in _LAYERS and _has_projections(node.args)}
    for operator in (*_LAYERS, *_CELLS):
        if operator not in projected:
            decompositions.pop(operator, None)
    return decompositions


def _has_projections(args: Any) -> bool:
    """Return whether each direction of an LSTM has a matrix that makes its states shorter."""
    _, _, parameters, has_biases, layers, _, _, is_bidirectional, _ = args
    return len(parameters) > (4 if has_biases else 2) * layers * (2 if is_bidirectional else 1)


def _layer(node: Node) -> Any:
    cell, activations = _KINDS[node.operator.split(".")[0]]
    if node["train"] and node["dropout"]:
        raise ValueError("has no translation with dropout; call eval() on the model")
    data, directions, batch_first = node["input"], 2 if node["bidirectional"] else 1, bool(node["batch_first"])
    steps, batch = extents(data)[:2][:: -1 if batch_first else 1]
    initial = [node["hx"]] if isinstance(node["hx"], relax.Expr) else list(node["hx"])
    parameters, each = list(node["params"]), 4 if node["has_biases"] else 2
    final: list[list[Any]] = []
    for _ in range(int(node["num_layers"])):
        outputs = []
        for direction in range(directions):
            weights, parameters = recurrent.Weights(*parameters[:each]), parameters[each:]
            layer = Recurrence(
                cell=cell,
                steps=steps,
                batch=batch,
                hidden=extents(weights.hidden)[1],
                dtype=node.dtype,
                wide=wide(node.dtype),
                activations=activations,
                is_backward=direction == 1,
                batch_first=batch_first,
            )
            states = [_element(node, each, len(final)) for each in initial]
            every, *last = recurrent.run(node.builder, layer, weights, data, states)
            outputs.append(every)
            final.append(last)
        data = outputs[0] if directions == 1 else node.emit(relax.op.concat(outputs, -1))
    return data, *(_stacked(node, list(states)) for states in zip(*final, strict=True))


def _cell(node: Node) -> Any:
    cell, activations = _KINDS[node.operator.split("_cell")[0]]
    data, hx = node["input"], node["hx"]
    initial = [hx] if isinstance(hx, relax.Expr) else list(hx)
    batch, depth = extents(data)
    layer = Recurrence(
        cell=cell,
        steps=1,
        batch=batch,
        hidden=extents(node["w_hh"])[1],
        dtype=node.dtype,
        wide=wide(node.dtype),
        activations=activations,
    )
    weights = recurrent.Weights(*(node[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")))
    step = node.emit(relax.op.reshape(data, [1, batch, depth]))
    _, *last = recurrent.run(node.builder, layer, weights, step, initial)
    return tuple(last) if len(last) > 1 else last[0]


def _element(node: Node, states: Any, place: int) -> Any:
    count, *others = extents(states)
    if count > 1:
        states = node.emit(relax.op.strided_slice(states, [0], [place], [place + 1]))
    return node.emit(relax.op.reshape(states, others))


def _stacked(node: Node, states: list[Any]) -> Any:
    if len(states) > 1:
        return node.emit(relax.op.stack(states, 0))
    return node.emit(relax.op.reshape(states[0], [1, *extents(states[0])]))


CONVERTERS: dict[str, Converter] = {
    **{operator.__name__: _layer for operator in _LAYERS},
    **{operator.__name__: _cell for operator in _CELLS},
}
