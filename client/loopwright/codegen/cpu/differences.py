"""Whether a function takes exponentials of nothing but distances below a maximum, as softmax does: none is above 1."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from loopwright.codegen.extremes import is_larger


def are_below_maxima(func: tirx.PrimFunc) -> bool:
    """Return whether each exponential in an unscheduled function is that of an element less the maximum of its row.

    A row is the elements of a tensor along some of its axes, all of them. The tensors have one block each, or none,
    that writes them.
    """
    exponentials = [call for call in _all(func.body, tvm.ir.Call) if getattr(call.op, "name", None) == "tirx.exp"]
    blocks = _all(func.body, tvm.s_tir.SBlock)
    return bool(exponentials) and all(_is_below(call.args[0], blocks) for call in exponentials)


def _is_below(expr: Any, blocks: list[Any]) -> bool:
    if not isinstance(expr, tirx.Sub):
        return False
    element, maximum = expr.a, expr.b
    if not all(isinstance(each, tvm.ir.TensorLoad) for each in (element, maximum)):
        return False
    writers = _writers(maximum.source, blocks)
    if len(writers) != 1 or len(_writers(element.source, blocks)) > 1:
        return False
    reduced = _reduced(writers[0])
    if reduced is None or not reduced[1].source.same_as(element.source):
        return False
    store, load = reduced
    axes = {axis.var: axis for axis in writers[0].iter_vars}
    for place, index in enumerate(load.indices):
        if not isinstance(index, tvm.ir.Var) or index not in axes:
            return False
        if int(axes[index].iter_type) == tirx.IterVar.CommReduce:
            domain = axes[index].dom
            if not (_is_number(domain.min, 0) and _is_number(domain.extent, int(load.source.shape[place]))):
                return False
            continue
        position = next((n for n, each in enumerate(store.indices) if each.same_as(index)), None)
        if position is None or not tvm_ffi.structural_equal(element.indices[place], maximum.indices[position]):
            return False
    return True


def _reduced(block: Any) -> tuple[Any, Any] | None:
    """Return the store of a block that takes maxima of elements, and the load of an element; None for any other."""
    stores = _all(block.body, tirx.BufferStore)
    if len(stores) != 1:
        return None
    value = stores[0].value
    if isinstance(value, tirx.Max):
        operands = [value.a, value.b]
    elif is_larger(value):
        operands = [value.false_value, value.true_value]
    else:
        return None
    if not all(isinstance(each, tvm.ir.TensorLoad) for each in operands):
        return None
    own = [each for each in operands if each.source.same_as(stores[0].buffer)]
    others = [each for each in operands if not each.source.same_as(stores[0].buffer)]
    if len(own) != 1 or not tvm_ffi.structural_equal(list(own[0].indices), list(stores[0].indices)):
        return None
    return stores[0], others[0]


def _writers(buffer: Any, blocks: list[Any]) -> list[Any]:
    return [
        block
        for block in blocks
        if block.iter_vars and any(store.buffer.same_as(buffer) for store in _all(block.body, tirx.BufferStore))
    ]


def _is_number(expr: Any, value: int) -> bool:
    return isinstance(expr, tirx.IntImm) and int(expr) == value


def _all(node: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, found.append), order="pre")
    return found
