"""The operation of a function, derived from the structure of its blocks, because names are arbitrary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm.s_tir.analysis import estimate_tir_flops
from tvm.sym import Analyzer

from loopwright.codegen.extremes import is_larger
from loopwright.codegen.gpu.tf32 import permits_tf32
from loopwright.codegen.graph.winograd import DIRECT
from loopwright.codegen.math_mode import TF32
from tuner.types import Operation

_REDUCE = 2
"""`IterVar.CommReduce`."""
_EXPONENTIALS = ("tirx.exp", "tirx.exp2")
_ROOTS = ("tirx.sqrt", "tirx.rsqrt")


def operation(mod: tvm.IRModule) -> Operation:
    """Return the operation of a module whose only function is ``main``; ``elementwise`` or ``reduction`` if unknown."""
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="post")
    computing = [block for block in map(_Block, blocks) if block.axes and block.values]
    if not computing:
        return Operation()
    # A function computes what its heaviest block does: a fused bias or a padding does not make another operation.
    heaviest = max(computing, key=lambda block: (bool(block.reduced), block.iterations))
    dtype = TF32 if permits_tf32(mod["main"]) else heaviest.dtype
    return Operation(_name(heaviest, computing), dtype, _flop(mod))


def _flop(mod: tvm.IRModule) -> float | None:
    usual = mod["main"].with_body(tvm_ffi.structural_map(mod["main"].body, (SBlockRealize, _usual), order="post"))
    try:
        flop = float(estimate_tir_flops(tvm.IRModule({"main": usual})))
    except Exception:  # TVM counts what it knows, and raises on the rest in many ways.
        return None
    return flop if math.isfinite(flop) and flop > 0 else None


def _usual(realize: SBlockRealize) -> tirx.Stmt:
    """Return a block, or nothing if it is one of sums for infinities and huge numbers, which inputs hardly contain."""
    return tirx.Evaluate(0) if str(realize.block.name_hint) == DIRECT else realize


class _Block:
    """A block with axes, and what its stores read and call."""

    def __init__(self, block: tvm.s_tir.SBlock) -> None:
        self.axes = [axis.var for axis in block.iter_vars]
        self.reduced = [axis.var for axis in block.iter_vars if int(axis.iter_type) == _REDUCE]
        extents = [axis.dom.extent for axis in block.iter_vars]
        self.iterations = math.prod(int(extent) for extent in extents if isinstance(extent, tirx.IntImm))
        stores = _found(block.body, tirx.BufferStore)
        self.values = [store.value for store in stores]
        self.dtype = str(stores[0].buffer.dtype) if stores else ""
        self.loads = [
            load
            for load in _found(block.body, tvm.ir.TensorLoad)
            if not any(load.source.same_as(store.buffer) for store in stores)
        ]
        analyzer = Analyzer()
        for axis in block.iter_vars:
            analyzer.bind(axis.var, axis.dom)
        # Simplified, for generators leave divisions of an axis by its extent.
        self._indices = [[analyzer.simplify(index) for index in load.indices] for load in self.loads]
        every = [index for indices in self._indices for index in indices]
        self._mixed = [index for index in every if len({self._is_reduced(var) for var in self._of(index)}) == 2]
        self.calls = {str(call.op.name) for call in _found(block.body, tvm.ir.Call) if hasattr(call.op, "name")}

    @property
    def is_contraction(self) -> bool:
        """Return whether a block sums products of elements of two buffers."""
        if len(self.values) != 1 or not isinstance(self.values[0], tirx.Add):
            return False
        if not _found(self.values[0], tirx.Mul):
            return False
        read = [load.source for load in self.loads]
        return len(read) >= 2 and not read[0].same_as(read[-1])

    @property
    def is_copy(self) -> bool:
        return all(
            isinstance(value, tvm.ir.TensorLoad)
            or (self.calls == {"prim.if_then_else"} and not _found(value, tirx.Mul))
            for value in self.values
        )

    def windows(self) -> int:
        """Return the dimensions along which a kernel slides: indices that add a reduced axis to a spatial axis."""
        return len({str(index) for index in self._mixed if not self._is_grouped(index)})

    def is_grouped(self) -> bool:
        return any(self._is_grouped(index) for index in self._mixed)

    def is_transposed(self) -> bool:
        """Return whether a kernel slides by fractions of an element."""
        return any(_found(index, tirx.FloorDiv) and not self._is_grouped(index) for index in self._mixed)

    def own_axes(self, load: Any) -> list[Any]:
        """Return the spatial axes in a load's indices."""
        used = [var for index in load.indices for var in self._of(index)]
        return [axis for axis in self.axes if not self._is_reduced(axis) and any(axis.same_as(var) for var in used)]

    def channels(self) -> int:
        """Reduced axes that stand alone in an index of every load: what a convolution sums over beside its window."""
        return min((sum(self._is_reduced(index) for index in indices) for indices in self._indices), default=0)

    def _is_grouped(self, index: Any) -> bool:
        """It picks a group of channels, ``co // 32 * 16 + rc``: what is divided has no reduced axis in it."""
        divisions = _found(index, tirx.FloorDiv)
        return bool(divisions) and not any(self._is_reduced(var) for each in divisions for var in self._of(each))

    def _of(self, index: Any) -> list[Any]:
        """Return the axes in an index."""
        return [var for var in _found(index, tvm.ir.Var) if any(var.same_as(axis) for axis in self.axes)]

    def _is_reduced(self, var: Any) -> bool:
        return any(var.same_as(axis) for axis in self.reduced)


def _name(heaviest: _Block, blocks: Sequence[_Block]) -> str:
    if not heaviest.reduced:
        return "copy" if all(block.is_copy for block in blocks) else "elementwise"
    windows = heaviest.windows()
    if heaviest.is_contraction:
        return _convolution(heaviest, windows) if windows else _product(heaviest)
    if windows:
        kind = "max" if _is_maximum(heaviest.values[0]) else "avg"
        return f"{kind}_pool{windows}d"
    calls = {call for block in blocks for call in block.calls}
    takes_maximum = any(block.reduced and _is_maximum(block.values[0]) for block in blocks)
    if takes_maximum and calls.intersection(_EXPONENTIALS):
        return "softmax"
    return "norm" if calls.intersection(_ROOTS) else "reduction"


def _is_maximum(value: Any) -> bool:
    """Return whether a reduction takes a maximum."""
    return is_larger(value) or bool(_found(value, tirx.Max))


def _convolution(block: _Block, windows: int) -> str:
    if block.is_transposed():
        return f"conv{windows}d_transpose"
    if block.is_grouped():
        return f"group_conv{windows}d"
    return f"conv{windows}d" if block.channels() else f"depthwise_conv{windows}d"


def _product(block: _Block) -> str:
    first, second = block.own_axes(block.loads[0]), block.own_axes(block.loads[-1])
    shared = [axis for axis in first if any(axis.same_as(other) for other in second)]
    if len(first) == len(shared) or len(second) == len(shared):
        return "gemv"
    return "batch_matmul" if shared else "matmul"


def _found(node: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, found.append), order="post")
    return found
