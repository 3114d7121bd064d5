"""Whether a function takes exponentials of nothing but distances below a maximum, as softmax does: none is above 1.

And which of its buffers have sums of all those of a row: none is below 1, for the maximum is in its row.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from loopwright.codegen.extremes import is_larger


def are_below_maxima(func: tirx.PrimFunc) -> bool:
    """Return whether each exponential in an unscheduled function is that of an element less the maximum of its row.

    A positive constant may multiply the difference. A row is the elements of a tensor along some of its axes, all of
    them. The tensors have one block each, or none, that writes them.
    """
    exponentials = [call for call in _all(func.body, tvm.ir.Call) if getattr(call.op, "name", None) == "tirx.exp"]
    blocks = _all(func.body, tvm.s_tir.SBlock)
    return bool(exponentials) and all(_is_below(_difference(call), blocks) for call in exponentials)


def sums_of_rows(func: tirx.PrimFunc) -> frozenset[str]:
    """Return the names of the buffers that an unscheduled function fills with sums of a row's exponentials.

    They are those of all elements of the row less the row's maximum. Of two buffers of one name, neither is named.
    """
    blocks = _all(func.body, tvm.s_tir.SBlock)
    names = [str(store.buffer.name) for store in _all(func.body, tirx.BufferStore)]
    stores = [store for store in (_sum_of_row(block, blocks) for block in blocks) if store is not None]
    # A sum has a store for its first value beside the one that adds.
    return frozenset(str(store.buffer.name) for store in stores if names.count(str(store.buffer.name)) == 2)


def _sum_of_row(block: Any, blocks: list[Any]) -> Any | None:
    """Return the store of a block that adds the exponentials of all elements of a row; None for any other block."""
    store = _only_store(block)
    first = getattr(block.init, "value", None)
    if store is None or not isinstance(first, tirx.FloatImm) or float(first.value) != 0.0:
        return None
    if not isinstance(store.value, tirx.Add) or not _is_load(store.value.a, store.buffer):
        return None
    term = call = store.value.b
    stored: Any = None
    if isinstance(term, tvm.ir.TensorLoad):
        writers = _writers(term.source, blocks)
        stored = _only_store(writers[0]) if len(writers) == 1 else None
        call = None if stored is None else stored.value
    if getattr(getattr(call, "op", None), "name", None) != "tirx.exp" or not _is_below(_difference(call), blocks):
        return None
    element, maximum = _difference(call).a, _difference(call).b
    if call is not term and not tvm_ffi.structural_equal(list(element.indices), list(stored.indices)):
        return None
    added = _reduced_places(block, element if call is term else term)
    [writer] = _writers(maximum.source, blocks)
    reduced = _reduced(writer)
    return store if reduced and added and added == _reduced_places(writer, reduced[1]) else None


def _difference(call: Any) -> Any:
    """Return the argument of an exponential without the positive constant that multiplies it."""
    [argument] = call.args
    is_scaled = isinstance(argument, tirx.Mul) and isinstance(argument.b, tirx.FloatImm) and float(argument.b.value) > 0
    return argument.a if is_scaled else argument


def _only_store(block: Any) -> Any | None:
    stores = _all(block.body, tirx.BufferStore)
    return stores[0] if len(stores) == 1 else None


def _is_load(expr: Any, buffer: Any) -> bool:
    return isinstance(expr, tvm.ir.TensorLoad) and expr.source.same_as(buffer)


def _reduced_places(block: Any, load: Any) -> list[int] | None:
    """Return the dimensions of what a block loads that it reduces; None if it does not reduce them from end to end."""
    axes = {axis.var: axis for axis in block.iter_vars if int(axis.iter_type) == tirx.IterVar.CommReduce}
    places = [n for n, index in enumerate(load.indices) if isinstance(index, tvm.ir.Var) and index in axes]
    for place in places:
        domain = axes[load.indices[place]].dom
        if not (_is_number(domain.min, 0) and _is_number(domain.extent, int(load.source.shape[place]))):
            return None
    return places if len(places) == len(axes) else None


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
    axes = {axis.var for axis in writers[0].iter_vars}
    row = _reduced_places(writers[0], load)
    if row is None:
        return False
    for place, index in enumerate(load.indices):
        if not isinstance(index, tvm.ir.Var) or index not in axes:
            return False
        if place in row:
            continue
        position = next((n for n, each in enumerate(store.indices) if each.same_as(index)), None)
        if position is None or not tvm_ffi.structural_equal(element.indices[place], maximum.indices[position]):
            return False
    return True


def _reduced(block: Any) -> tuple[Any, Any] | None:
    """Return the store of a block that takes maxima of elements, and the load of an element; None for any other."""
    store = _only_store(block)
    if store is None:
        return None
    value = store.value
    if isinstance(value, tirx.Max):
        operands = [value.a, value.b]
    elif is_larger(value):
        operands = [value.false_value, value.true_value]
    else:
        return None
    if not all(isinstance(each, tvm.ir.TensorLoad) for each in operands):
        return None
    own = [each for each in operands if each.source.same_as(store.buffer)]
    others = [each for each in operands if not each.source.same_as(store.buffer)]
    if len(own) != 1 or not tvm_ffi.structural_equal(list(own[0].indices), list(store.indices)):
        return None
    return store, others[0]


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
