"""Recurrent layers as one function: the steps are a loop in it, which nothing can take out of their order.

What the inputs of all steps give is computed before, by one product. In a step, the state is multiplied with a matrix,
and the gates follow. The matrix, and what the inputs give, are in panels of `WIDTH` units, in which the gates of a unit
are neighbours: ``[units / WIDTH, depth, gates, WIDTH]`` and ``[…, units / WIDTH, gates, WIDTH]``. Units behind the last
one have weights of 0, and nothing reads them.

Sequences of a batch do not depend on each other. They are in parts, which may run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from loopwright.codegen.extremes import larger, smaller
from loopwright.codegen.graph.nests import extents, nest
from loopwright.codegen.graph.rewriting import OPAQUE

PARTS, STEP = "recurrent_parts", "recurrent_step"
"""Names of the blocks that have others within them: a part of the batch, and a step of its sequences."""
FINAL, FINAL_MEMORY = "recurrent_final", "recurrent_final_memory"
"""Of the blocks that return the last states."""
WIDTH = 16
"""Units of a panel: a multiple of the float32 in the vectors of all processors."""
_MOST_ROWS = 4
"""Sequences of a part: as many share what is read of the matrix. Not tuned."""


class Cell(StrEnum):
    RNN = "rnn"
    GRU = "gru"
    LSTM = "lstm"

    @property
    def gates(self) -> int:
        """How many gates a unit has: of a GRU reset, update, candidate; of an LSTM input, forget, candidate, output."""
        return {Cell.RNN: 1, Cell.GRU: 3, Cell.LSTM: 4}[self]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One direction of a recurrent layer.

    Attributes:
        hidden: the number of units.
        dtype: of states and outputs; ``wide`` is that of sums and of what the inputs give.
        activations: names of functions: of the gates, of the candidate, and of what an LSTM returns.
        limit: of the magnitude of arguments of the first two activations; None for none.
        resets_state: whether a GRU's reset gate multiplies the state before the product instead of after it.
        is_backward: whether the last step is the first one.
        batch_first: whether inputs and outputs are ``[batch, steps, …]``; else they are ``[steps, batch, …]``.
        has_peepholes: whether gates of an LSTM see its memory.
        has_lengths: whether sequences end before the last step. Their states then stay, and their outputs are 0.
    """

    cell: Cell
    steps: int
    batch: int
    hidden: int
    dtype: str
    wide: str
    activations: tuple[str, ...]
    limit: float | None = None
    resets_state: bool = False
    is_backward: bool = False
    batch_first: bool = False
    has_peepholes: bool = False
    has_lengths: bool = False

    @property
    def panels(self) -> int:
        return -(-self.hidden // WIDTH)

    @property
    def rows(self) -> int:
        """The sequences of a part."""
        most = min(_MOST_ROWS, max(1, self.batch // 2))
        return max(rows for rows in range(1, most + 1) if self.batch % rows == 0)

    @property
    def states(self) -> int:
        """How many states there are: that of the units, and the memory of an LSTM."""
        return 2 if self.cell is Cell.LSTM else 1

    def over_steps(self, *sizes: int) -> list[int]:
        """Return the shape of a tensor that has elements for all steps."""
        return [*((self.batch, self.steps) if self.batch_first else (self.steps, self.batch)), *sizes]


def function(layer: Recurrence) -> tirx.PrimFunc:
    """Return the function of a layer.

    Its inputs are what the inputs of all steps give, the matrix, the bias ``[panels, gates, WIDTH]`` of what the state
    gives, the initial states ``[batch, hidden]``, and, if the layer has them, peepholes ``[panels, 3, WIDTH]`` of
    input, output and forget, and lengths ``[batch]`` in int32. Its outputs are those of all steps, and the last states.
    """
    with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
        T.func_name(f"{layer.cell}_steps")
        T.func_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
        _body(layer)
    return builder.get()


def _body(layer: Recurrence) -> None:
    panels, gates, rows = layer.panels, layer.cell.gates, layer.rows
    units = [layer.batch, layer.hidden]
    given = _parameter("given", layer.over_steps(panels, gates, WIDTH), layer.wide)
    weight = _parameter("weight", [panels, layer.hidden, gates, WIDTH], layer.dtype)
    bias = _parameter("bias", [panels, gates, WIDTH], layer.dtype)
    initial = [_parameter(f"initial{place}", units, layer.dtype) for place in range(layer.states)]
    peepholes = _parameter("peepholes", [panels, 3, WIDTH], layer.dtype) if layer.has_peepholes else None
    lengths = _parameter("lengths", [layer.batch], "int32") if layer.has_lengths else None
    outputs = _parameter("outputs", layer.over_steps(layer.hidden), layer.dtype)
    final = [_parameter(f"final{place}", units, layer.dtype) for place in range(layer.states)]
    [parts, steps] = extents(layer.batch // rows, layer.steps)
    with T.grid(parts) as part_loop, T.sblock(PARTS):
        part = T.axis.spatial(parts, part_loop)
        states = [_units(layer) for _ in initial]
        for place, (state, source) in enumerate(zip(states, initial, strict=True)):
            with nest(f"recurrent_initial{place}", rows, panels, WIDTH) as (b, p, i):
                T.buffer_store(state, _element(layer, source, part * rows + b, p * WIDTH + i), [b, p, i])
        with T.grid(steps) as step_loop, T.sblock(STEP):
            # The axis is neither spatial nor reduced: no schedule changes the order of the steps.
            step = T.axis.scan(steps, step_loop)
            time = layer.steps - 1 - step if layer.is_backward else step
            _Step(layer, given, weight, bias, peepholes, lengths, states, part, time).run(outputs)
        for place, (state, result) in enumerate(zip(states, final, strict=True)):
            with nest(FINAL if place == 0 else FINAL_MEMORY, rows, layer.hidden) as (b, u):
                value = state[b, u // WIDTH, u % WIDTH].astype(layer.dtype)
                T.buffer_store(result, value, [part * rows + b, u])


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a part at a time. ``states`` are those before it, ``[rows, panels, WIDTH]``."""

    layer: Recurrence
    given: Any
    weight: Any
    bias: Any
    peepholes: Any
    lengths: Any
    states: list[Any]
    part: Any
    time: Any

    def run(self, outputs: Any) -> None:
        layer = self.layer
        after = {Cell.RNN: self._simple, Cell.GRU: self._gru, Cell.LSTM: self._lstm}[layer.cell]()
        with nest("recurrent_outputs", layer.rows, layer.hidden) as (b, u):
            value = after[0][b, u // WIDTH, u % WIDTH]
            if self.lengths is not None:
                value = tirx.Select(self._is_active(b), value, tirx.const(0, layer.wide))
            T.buffer_store(outputs, value.astype(layer.dtype), [*self._place(b), u])
        for number, (state, new) in enumerate(zip(self.states, after, strict=True)):
            with nest(f"recurrent_next{number}", layer.rows, layer.panels, WIDTH) as (b, p, i):
                T.buffer_store(state, new[b, p, i], [b, p, i])

    def _simple(self) -> list[Any]:
        sums = self._sums("recurrent_sums", self.states[0])
        activation = self._activation(0)

        def state(*unit: Any) -> Any:
            return activation(self._argument(sums, 0, unit))

        return [self._after(0, "recurrent_state", state)]

    def _gru(self) -> list[Any]:
        sigma, tanh = self._activation(0), self._activation(1)
        [before] = self.states
        if self.layer.resets_state:
            sums = self._sums("recurrent_sums", before, count=2)
            reset = _units(self.layer)
            with nest("recurrent_reset", self.layer.rows, self.layer.panels, WIDTH) as unit:
                T.buffer_store(reset, sigma(self._argument(sums, 0, unit)) * before[*unit], unit)
            last = self._sums("recurrent_candidate_sums", reset, first=2, count=1)

            def inner(unit: Any) -> Any:
                return self._argument(last, 2, unit, first=2)
        else:
            sums = self._sums("recurrent_sums", before)

            def inner(unit: Any) -> Any:
                known = self._known(sums, 2, unit)
                return self._given(2, unit) + sigma(self._argument(sums, 0, unit)) * known

        def state(*unit: Any) -> Any:
            update = sigma(self._argument(sums, 1, unit))
            candidate = tirx.Var("candidate", self.layer.wide)
            return tirx.Let(candidate, tanh(inner(unit)), candidate + update * (before[*unit] - candidate))

        return [self._after(0, "recurrent_state", state)]

    def _lstm(self) -> list[Any]:
        sigma, tanh, last = (self._activation(place) for place in range(3))
        sums, before = self._sums("recurrent_sums", self.states[0]), self.states[1]

        def gate(number: int, peephole: int, memory: Any, unit: Any) -> Any:
            argument = self._argument(sums, number, unit)
            if self.peepholes is not None:
                _, p, i = unit
                argument = argument + self.peepholes[p, peephole, i].astype(self.layer.wide) * memory[*unit]
            return sigma(argument)

        def memory(*unit: Any) -> Any:
            entered = gate(0, 0, before, unit) * tanh(self._argument(sums, 2, unit))
            return gate(1, 2, before, unit) * before[*unit] + entered

        after = self._after(1, "recurrent_memory", memory)

        def state(*unit: Any) -> Any:
            return gate(3, 1, after, unit) * last(after[*unit])

        return [self._after(0, "recurrent_state", state), after]

    def _sums(self, name: str, state: Any, first: int = 0, count: int | None = None) -> Any:
        """Open the block of what a state gives to gates from the first one on: ``[rows, panels, gates, WIDTH]``."""
        layer = self.layer
        count = layer.cell.gates if count is None else count
        sizes = extents(layer.rows, layer.panels, layer.hidden, count, WIDTH)
        rows, panels, depth, gates, width = sizes
        sums = T.sblock_alloc_buffer([rows, panels, gates, width], layer.wide)
        with T.grid(*sizes) as loops, T.sblock(name):
            b, p, k, g, i = (
                (T.axis.reduce if extent is depth else T.axis.spatial)(extent, loop)
                for extent, loop in zip(sizes, loops, strict=True)
            )
            with T.init():
                T.buffer_store(sums, tirx.const(0, layer.wide), [b, p, g, i])
            term = state[b, k // WIDTH, k % WIDTH] * self.weight[p, k, g + first, i].astype(layer.wide)
            T.buffer_store(sums, sums[b, p, g, i] + term, [b, p, g, i])
        return sums

    def _after(self, place: int, name: str, value: Callable[..., Any]) -> Any:
        """Open the block of a state after the step: one of ``value`` for each sequence, panel and unit."""
        layer, after = self.layer, _units(self.layer)
        with nest(name, layer.rows, layer.panels, WIDTH) as unit:
            new = value(*unit)
            if self.lengths is not None:
                new = tirx.Select(self._is_active(unit[0]), new, self.states[place][*unit])
            T.buffer_store(after, new, unit)
        return after

    def _argument(self, sums: Any, gate: int, unit: Any, first: int = 0) -> Any:
        return self._given(gate, unit) + self._known(sums, gate, unit, first)

    def _given(self, gate: int, unit: Any) -> Any:
        b, p, i = unit
        return self.given[*self._place(b), p, gate, i]

    def _known(self, sums: Any, gate: int, unit: Any, first: int = 0) -> Any:
        """Return what the state gives to a gate, of sums for the gates from the first one on."""
        b, p, i = unit
        return sums[b, p, gate - first, i] + self.bias[p, gate, i].astype(self.layer.wide)

    def _place(self, b: Any) -> list[Any]:
        sequence = self.part * self.layer.rows + b
        return [sequence, self.time] if self.layer.batch_first else [self.time, sequence]

    def _is_active(self, b: Any) -> Any:
        """Return whether the sequence has this step."""
        return self.time < self.lengths[self.part * self.layer.rows + b].astype("int64")

    def _activation(self, place: int) -> Callable[[Any], Any]:
        """Return an activation, whose argument is limited, but for the one of the memory, as in ONNX Runtime."""
        activation, limit = _ACTIVATIONS[self.layer.activations[place]], self.layer.limit
        if limit is None or place == _OF_MEMORY:
            return activation
        least, most = (tirx.const(bound, self.layer.wide) for bound in (-limit, limit))
        return lambda x: activation(smaller(larger(x, least), most))


def _parameter(name: str, shape: Sequence[int], dtype: str) -> Any:
    return T.arg(name, T.Buffer(extents(*shape), dtype))


def _units(layer: Recurrence) -> Any:
    """Return a buffer for the units of a part, in the block that is open."""
    return T.sblock_alloc_buffer(extents(layer.rows, layer.panels, WIDTH), layer.wide)


def _element(layer: Recurrence, source: Any, sequence: Any, unit: Any) -> Any:
    """Return the element of a unit; 0 for a unit behind the last one."""
    value = source[sequence, unit].astype(layer.wide)
    if layer.hidden % WIDTH == 0:
        return value
    return tirx.if_then_else(unit < layer.hidden, value, tirx.const(0, layer.wide))


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "Relu": lambda x: larger(x, tirx.const(0, x.ty.dtype)),
    "Sigmoid": tirx.sigmoid,
    "Tanh": tirx.tanh,
}
ACTIVATIONS = frozenset(_ACTIVATIONS)
"""Names of the functions that a layer may have."""
_OF_MEMORY = 2
"""The place of an LSTM's activation of its memory."""
