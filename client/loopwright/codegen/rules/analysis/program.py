"""A function as rules see it: its blocks in order, with their axes, what they compute, and who reads whom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from loopwright.codegen.extremes import is_larger
from loopwright.codegen.graph.recurrence import PARTS, STEP
from loopwright.codegen.weights.layout_free import weight_of
from loopwright.codegen.weights.shared_weights import shares_weight

_SPATIAL, _REDUCE = 0, 2
"""`IterVar.DataPar`, `IterVar.CommReduce`."""

STEPS_RULE = "recurrent"
"""The name of the rule for programs whose blocks run in steps."""


@dataclass(frozen=True)
class Block:
    """One computing block: ``name``, its store, and its axes in the order of its loops."""

    name: str
    block: Any

    @cached_property
    def store(self) -> Any:
        """The only store; None if there are several."""
        stores = found(self.block.body, tirx.BufferStore)
        return stores[0] if len(stores) == 1 else None

    @cached_property
    def spatial(self) -> list[tuple[Any, int]]:
        """The spatial axes: variable and extent."""
        return [(a.var, int(a.dom.extent)) for a in self.block.iter_vars if int(a.iter_type) == _SPATIAL]

    @cached_property
    def reduced(self) -> list[tuple[Any, int]]:
        """The reduction axes: variable and extent."""
        return [(a.var, int(a.dom.extent)) for a in self.block.iter_vars if int(a.iter_type) == _REDUCE]

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduced)

    @property
    def operation(self) -> str | None:
        """What a reduction combines elements to; "largest" is a maximum that keeps NaN. None for anything else."""
        value = self.store.value
        known = {tirx.Add: "sum", tirx.Max: "max", tirx.Min: "min"}
        return "largest" if is_larger(value) else known.get(type(value))

    @property
    def term(self) -> Any:
        """What a reduction combines with its result so far."""
        value = self.store.value
        return value.true_value if self.operation == "largest" else value.b

    @cached_property
    def loads(self) -> list[Any]:
        """The loads of other buffers than the one that is written, in order of evaluation."""
        loads = found(self.term if self.operation == "largest" else self.store.value, tvm.ir.TensorLoad)
        return [load for load in loads if not load.source.same_as(self.store.buffer)]

    @cached_property
    def calls(self) -> set[str]:
        """Names of the operators that are called, such as ``tirx.exp``."""
        return {str(call.op.name) for call in found(self.store.value, tvm.ir.Call) if hasattr(call.op, "name")}

    @property
    def dtype(self) -> str:
        return str(self.store.buffer.dtype)

    @property
    def iterations(self) -> int:
        return math.prod(extent for _, extent in [*self.spatial, *self.reduced])

    def reads(self, buffer: Any) -> bool:
        return any(load.source.same_as(buffer) for load in self.loads)


@dataclass(frozen=True)
class AnalysedProgram:
    """The function ``main`` of a workload. ``blocks`` are in order; rules apply where each has one store."""

    blocks: tuple[Block, ...]
    outputs: tuple[str, ...]
    """Names of the blocks that write a parameter."""
    weight: Any
    """The parameter that is a weight (`loopwright.codegen.weights.layout_free`); None if there is none."""
    shares_weight: bool = False
    """Whether the weight has the layout of all programs (`loopwright.codegen.weights.shared_weights`)."""
    has_steps: bool = False
    """Whether it is a recurrent layer, whose blocks run in steps."""

    @staticmethod
    def of(mod: tvm.IRModule) -> AnalysedProgram | None:
        """Return the analysis of a module's ``main``; None if it is of no form that rules take.

        That form is a sequence of perfect loop nests: a block in each, one store in each block, static extents, no
        block within another, and no name twice. Of a recurrent layer (`loopwright.codegen.graph.recurrence`), the
        blocks are those within the blocks of parts and of steps.
        """
        func = mod["main"]
        blocks: list[Any] = []
        tvm_ffi.structural_walk(func.body, (tvm.s_tir.SBlock, blocks.append), order="pre")
        if not blocks or any(block.iter_vars for block in blocks[:1]):
            return None
        named = [Block(str(block.name_hint), block) for block in blocks[1:]]
        computing = [block for block in named if block.name not in (PARTS, STEP)]
        if not computing or len({block.name for block in computing}) != len(computing):
            return None
        for block in computing:
            if (
                block.store is None
                or block.block.match_buffers
                or block.block.alloc_buffers
                or not block.block.iter_vars
            ):
                return None
            if not all(isinstance(axis.dom.extent, tirx.IntImm) for axis in block.block.iter_vars):
                return None
        outputs = tuple(b.name for b in computing if any(b.store.buffer.same_as(param) for param in func.params))
        position = weight_of(func)
        weight = None if position is None else func.params[position]
        return AnalysedProgram(
            tuple(computing), outputs, weight, weight is not None and shares_weight(func), len(computing) < len(named)
        )

    def admits(self, rule: str) -> bool:
        """Return whether a rule of this name may schedule the program: only one knows of steps."""
        return (rule == STEPS_RULE) == self.has_steps

    def block(self, name: str) -> Block:
        return next(block for block in self.blocks if block.name == name)

    def producer(self, buffer: Any) -> Block | None:
        """Return the block that writes a buffer; None for a parameter."""
        return next((block for block in self.blocks if block.store.buffer.same_as(buffer)), None)

    def consumers(self, block: Block) -> list[Block]:
        """Return the blocks that read what a block writes."""
        return [other for other in self.blocks if other is not block and other.reads(block.store.buffer)]

    @property
    def reductions(self) -> list[Block]:
        return [block for block in self.blocks if block.is_reduction]


def variables(expression: Any) -> list[Any]:
    """Return the variables in an expression."""
    return found(expression, tvm.ir.Var)


def is_var(expression: Any, var: Any) -> bool:
    """Return whether an index is just this variable."""
    return isinstance(expression, tvm.ir.Var) and expression.same_as(var)


def found(node: Any, kind: type) -> list[Any]:
    """Return all nodes of a kind within another, in post-order."""
    nodes: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, nodes.append), order="post")
    return nodes
