"""Recurrent layers in Relax: a product of the inputs of all steps, and a function of all steps.

Weights are as PyTorch and ONNX have them, ``[gates * units, depth]``, with the gates in the order of `Cell`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax

from loopwright.codegen.graph.recurrence import WIDTH, Recurrence, function


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one direction: what inputs and states are multiplied by, and what is added to each of the products.

    ``peepholes`` ``[3 * units]`` are of the gates input, output and forget.
    """

    inputs: Any
    hidden: Any
    input_bias: Any = None
    hidden_bias: Any = None
    peepholes: Any = None


def run(
    builder: relax.BlockBuilder,
    layer: Recurrence,
    weights: Weights,
    data: Any,
    states: Sequence[Any],
    lengths: Any = None,
) -> list[Any]:
    """Return the outputs of all steps, as the layer says, and the last states ``[batch, units]``.

    Args:
        data: ``[steps, batch, depth]``, or ``[batch, steps, depth]`` if the layer says so.
        states: the initial ones, ``[batch, units]``.
        lengths: ``[batch]`` in int32, if the layer has them.
    """
    emit, gates = builder.emit, layer.cell.gates
    columns = layer.panels * gates * WIDTH
    by_gate = emit(relax.op.reshape(weights.inputs, [gates, layer.hidden, -1]))
    matrix = emit(relax.op.reshape(_panels(emit, layer, by_gate, [3, 1, 0, 2]), [-1, columns]))
    given = emit(relax.op.matmul(data, matrix, out_dtype=layer.wide))
    if weights.input_bias is not None:
        bias = emit(relax.op.reshape(_vector(emit, layer, weights.input_bias, gates), [columns]))
        given = emit(relax.op.add(given, _cast(emit, bias, layer.wide)))
    given = emit(relax.op.reshape(given, layer.over_steps(layer.panels, gates, WIDTH)))
    by_gate = emit(relax.op.reshape(weights.hidden, [gates, layer.hidden, layer.hidden]))
    zeros = relax.op.zeros((layer.panels, gates, WIDTH), layer.dtype)
    operands = [
        given,
        _panels(emit, layer, by_gate, [1, 3, 0, 2]),
        emit(zeros) if weights.hidden_bias is None else _vector(emit, layer, weights.hidden_bias, gates),
        *states,
        *(() if weights.peepholes is None else (_vector(emit, layer, weights.peepholes, 3),)),
        *(() if lengths is None else (lengths,)),
    ]
    types = [
        relax.TensorType(layer.over_steps(layer.hidden), layer.dtype),
        *(relax.TensorType([layer.batch, layer.hidden], layer.dtype) for _ in states),
    ]
    steps = builder.add_func(function(layer), f"{layer.cell}_steps")
    results = emit(relax.call_tir(steps, operands, out_ty=types))
    return [emit(results[place]) for place in range(len(types))]


_Emit = Callable[[Any], Any]


def _vector(emit: _Emit, layer: Recurrence, value: Any, gates: int) -> Any:
    """Return ``[gates * units]`` as ``[panels, gates, WIDTH]``."""
    by_gate = emit(relax.op.reshape(value, [gates, layer.hidden, 1]))
    return emit(relax.op.reshape(_panels(emit, layer, by_gate, [1, 0, 2, 3]), [layer.panels, gates, WIDTH]))


def _panels(emit: _Emit, layer: Recurrence, by_gate: Any, order: Sequence[int]) -> Any:
    """Return ``[gates, units, depth]``, with zeros for the units behind the last one, as ``[gates, panels, WIDTH,
    depth]`` whose axes are in another order."""
    gates, _, depth = by_gate.ty.shape
    rest = layer.panels * WIDTH - layer.hidden
    if rest:
        by_gate = emit(relax.op.nn.pad(by_gate, [0, 0, 0, rest, 0, 0]))
    split = emit(relax.op.reshape(by_gate, [gates, layer.panels, WIDTH, depth]))
    return emit(relax.op.permute_dims(split, list(order)))


def _cast(emit: _Emit, value: Any, dtype: str) -> Any:
    return value if str(value.ty.dtype) == dtype else emit(relax.op.astype(value, dtype))
