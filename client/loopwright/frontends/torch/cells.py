"""Loops over recurrent cells, which ``torch.export`` unrolls, as layers of as many steps."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten

_LAYERS: dict[Any, Any] = {
    _aten.lstm_cell.default: _aten.lstm.input,
    _aten.gru_cell.default: _aten.gru.input,
    _aten.rnn_tanh_cell.default: _aten.rnn_tanh.input,
    _aten.rnn_relu_cell.default: _aten.rnn_relu.input,
}
_MATRICES = 2
"""Weights of a cell without biases."""


def merge_cells(graph: Graph) -> None:
    """Replace cells, each of which takes the states of the one before it and the same weights, by one layer.

    They stay as they are if the input of one of them depends on another, as in a decoder that reads what it wrote, or
    if anything else takes the memory of an LSTM before the last step.
    """
    chains = [chain for chain in _chains(graph) if len(chain.cells) > 1 and _is_layer(chain)]
    for output, state in [_merge(graph, chain) for chain in chains]:
        output.replace_all_uses_with(state)
    if chains:
        graph.eliminate_dead_code()


@dataclass(frozen=True, slots=True)
class _Chain:
    cells: list[Node]

    @property
    def is_lstm(self) -> bool:
        return self.cells[0].target is _aten.lstm_cell.default


def _chains(graph: Graph) -> Iterator[_Chain]:
    previous = {cell: _before(cell) for cell in graph.nodes if cell.target in _LAYERS}
    following = {before: cell for cell, before in previous.items() if before is not None}
    for cell, before in previous.items():
        if before is None or following[before] is not cell:
            cells = [cell]
            while cells[-1] in following:
                cells.append(following[cells[-1]])
            yield _Chain(cells)


def _before(cell: Node) -> Node | None:
    """Return the cell of the step before, if its states and its weights are those of this one."""
    states = _states(cell)
    if all(state.target is operator.getitem for state in states):
        sources = {state.args[0] for state in states}
        if len(sources) != 1 or [state.args[1] for state in states] != list(range(len(states))):
            return None
        [source] = sources
    else:
        [source] = states[:1]
    is_same = isinstance(source, Node) and source.target is cell.target and source.args[2:] == cell.args[2:]
    return source if is_same else None


def _states(cell: Node) -> list[Any]:
    return list(cell.args[1]) if isinstance(cell.args[1], list | tuple) else [cell.args[1]]


def _is_layer(chain: _Chain) -> bool:
    own = set(chain.cells)
    for cell in chain.cells:
        if own & _ancestors(cell.args[0]):
            return False
    if not chain.is_lstm:
        return True
    for cell, after in zip(chain.cells, chain.cells[1:], strict=False):
        if any(user is not after for memory in _results(cell, 1) for user in memory.users):
            return False
    return True


def _ancestors(node: Any) -> set[Node]:
    """Return what a value is computed from, itself among it."""
    found: set[Node] = set()
    left = [node] if isinstance(node, Node) else []
    while left:
        current = left.pop()
        if current not in found:
            found.add(current)
            left += current.all_input_nodes
    return found


def _merge(graph: Graph, chain: _Chain) -> tuple[Node, Node]:
    """Return the output of the last step, which layers that read all steps may take, and the equal state behind it."""
    first, last = chain.cells[0], chain.cells[-1]
    inputs = [cell.args[0] for cell in chain.cells]
    needed = set().union(*map(_ancestors, inputs))
    nodes = list(graph.nodes)
    for node in nodes[nodes.index(first) :]:
        if node in needed:
            first.prepend(node)
    with graph.inserting_before(first):
        data, axis = _sequence(graph, inputs)
        states = [_call(graph, _aten.unsqueeze.default, state, 0) for state in _states(first)]
        weights = [weight for weight in first.args[2:] if weight is not None]
        layer = _call(
            graph,
            _LAYERS[first.target],
            data,
            states if chain.is_lstm else states[0],
            weights,
            len(weights) > _MATRICES,
            1,
            0.0,
            False,
            False,
            axis == 1,
        )
        outputs = _call(graph, operator.getitem, layer, 0)
        results = [_call(graph, _aten.select.int, outputs, axis, place) for place in range(len(inputs))]
        for cell, result in zip(chain.cells, results, strict=True):
            for each in _results(cell, 0) if chain.is_lstm else [cell]:
                each.replace_all_uses_with(result)
        state = _last(graph, layer, 1)
        if chain.is_lstm:
            memory = _last(graph, layer, 2)
            for each in _results(last, 1):
                each.replace_all_uses_with(memory)
    _join(graph, outputs, results, axis)
    return results[-1], state


def _last(graph: Graph, layer: Node, place: int) -> Node:
    """Return a state behind the last step, which layers return with an axis of one layer."""
    state = _call(graph, operator.getitem, layer, place)
    return _call(graph, _aten.view.default, state, list(state.meta["val"].shape[1:]))


def _sequence(graph: Graph, inputs: list[Any]) -> tuple[Node, int]:
    """Return the inputs of all steps as one tensor, and the axis of the steps: the one that they are elements of."""
    first = inputs[0]
    if first.target is _aten.select.int and first.args[1] in (0, 1):
        source, axis = first.args[:2]
        if source.meta["val"].shape[axis] == len(inputs) and all(
            each.target is _aten.select.int and each.args == (source, axis, place) for place, each in enumerate(inputs)
        ):
            return source, axis
    return _call(graph, _aten.stack.default, inputs, 0), 0


def _results(cell: Node, place: int) -> list[Node]:
    return [user for user in cell.users if user.target is operator.getitem and user.args[1] == place]


def _join(graph: Graph, outputs: Node, results: list[Node], axis: int) -> None:
    """Let the outputs of all steps take the place of their concatenation in order, which ``stack`` has become."""
    for joined in list(results[0].users):
        dim = (*joined.args[1:], 0)[0]
        if joined.target is not _aten.cat.default or list(joined.args[0]) != results or dim not in (0, 1):
            continue
        with graph.inserting_before(joined):
            whole = outputs if dim == axis else _call(graph, _aten.permute.default, outputs, [1, 0, 2])
            whole = _call(graph, _aten.reshape.default, whole, list(joined.meta["val"].shape))
        joined.replace_all_uses_with(whole)


def _call(graph: Graph, target: Any, *args: Any) -> Node:
    """Add a call to a graph, with a tensor of the shape and the dtype of its result."""
    node = graph.call_function(target, args)
    values = torch.fx.node.map_arg(args, lambda each: each.meta["val"])
    node.meta["val"] = target(*values)
    return node
