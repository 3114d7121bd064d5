"""Which arguments of functions are weights: tensors that stay the same in every call, whose layout is ours to choose.

Detaching marks a Relax function (`mark_inputs`); lowering the module then declares the weight of each PrimFunc that its
Relax functions call (`declare_weights`), by the attribute that TVM's schedule rules read as well.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax

from loopwright.codegen.functions import prim_funcs, relax_funcs

_INPUTS = "loopwright.num_input"
"""On a Relax function: the number of its parameters before the detached weights. TVM's ``num_input`` is no substitute:
it is also there if the caller gives the weights in each call."""
_LAYOUT_FREE = "layout_free_buffers"


def mark_inputs(func: relax.Function, count: int) -> relax.Function:
    """Return the function with a note that its parameters after the first ``count`` are detached weights."""
    return func.with_attr(_INPUTS, count)


def input_count(func: relax.Function) -> int:
    """Return the number of a Relax function's parameters that are no detached weights."""
    return int((func.attrs or {}).get(_INPUTS, len(func.params)))


def declare_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a lowered module in which each PrimFunc names its weight, and only then.

    A function's weight is the largest of its arguments that are constants or detached weights in all calls, and
    matrices at least. One is enough: TVM cannot fold the packing of two.
    """
    places: dict[str, set[int]] = {}
    for _, func in relax_funcs(mod):
        _note_weights(func, list(func.params[input_count(func) :]), places)
    declared = mod.clone()
    for var, func in prim_funcs(mod):
        weight = _largest(func, places.get(str(var.name_hint), set()))
        if weight is not None:
            declared.update_func(var, func.with_attr(_LAYOUT_FREE, [weight]))
        elif _LAYOUT_FREE in (func.attrs or {}):
            declared.update_func(var, func.without_attr(_LAYOUT_FREE))
    return declared


def weight_of(func: tvm.tirx.PrimFunc) -> int | None:
    """Return the position of a function's weight among its arguments; None if it has none."""
    positions = (func.attrs or {}).get(_LAYOUT_FREE)
    return int(positions[0]) if positions else None


def _note_weights(func: relax.Function, weights: list[relax.Var], places: dict[str, set[int]]) -> None:
    """Keep in ``places``, for each function that is called, the positions of arguments that are always weights."""
    call_tir = tvm.ir.Op.get("relax.call_tir")

    def visit(node: Any) -> None:
        if not isinstance(node, relax.Call) or not node.op.same_as(call_tir):
            return
        found = {
            place
            for place, arg in enumerate(node.args[1].fields)
            if isinstance(arg, tvm.ir.GenericConst) or any(arg.same_as(weight) for weight in weights)
        }
        name = str(node.args[0].name_hint)
        places[name] = places.get(name, found) & found

    relax.analysis.post_order_visit(func, visit)


def _largest(func: tvm.tirx.PrimFunc, places: set[int]) -> int | None:
    sizes = {}
    for place in places:
        shape = func.params[place].shape
        if len(shape) > 1 and all(isinstance(extent, tvm.tirx.IntImm) for extent in shape):
            sizes[place] = math.prod(map(int, shape))
    largest = max(sizes, key=lambda place: (sizes[place], -place), default=None)
    return largest if largest is not None and sizes[largest] > 1 else None
