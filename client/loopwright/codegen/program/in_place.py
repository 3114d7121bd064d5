"""Writes into inputs of a program, in place of copies of them with a few changes. Needs TVM.

A cache that is an input and, with new rows in it, a result, would be copied in each call. A function that returns the
element that it reads, ``select(changed, value, cache[i])``, needs only to write the others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import TensorLoad, TensorRegion
from tvm.relax.expr_functor import mutator

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.graph.rewriting import CallRewriter, rewrite_calls
from loopwright.codegen.program.schedule import new_schedule


def write_in_place(mod: tvm.IRModule, lowered: tvm.IRModule, inputs: Collection[int]) -> tvm.IRModule:
    """Return a module that changes some of its inputs where it would return changed copies of them.

    A function stays as it is unless it is the only one that reads the input.

    Args:
        mod: a Relax module with ``main``, with schedules.
        lowered: the same module without schedules, from which the functions that write are made.
        inputs: positions of the inputs that may be changed.
    """
    functions = {str(var.name_hint): func for var, func in prim_funcs(lowered)}
    changeable = [mod["main"].params[position] for position in inputs]
    return rewrite_calls(mod, lambda each: _InPlace(each, functions, changeable))


@mutator
class _InPlace(CallRewriter):
    def __init__(self, mod: tvm.IRModule, functions: dict[str, tirx.PrimFunc], changeable: list[relax.Var]) -> None:
        super().__init__(mod)
        self.functions = functions
        self.changeable = changeable

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "call_tir" or (func := self.functions.get(str(call.args[0].name_hint))) is None:
            return call
        for position, argument in enumerate(call.args[1].fields):
            is_changeable = any(argument.same_as(each) for each in self.changeable)
            if is_changeable and self.uses()[argument] == 1 and (writer := writing(func, position)) is not None:
                reference = self.builder_.add_func(writer, f"{call.args[0].name_hint}_in_place")
                return relax.op.call_tir_inplace(reference, call.args[1], position, list(call.ty_args))
        return call


def writing(func: tirx.PrimFunc, position: int) -> tirx.PrimFunc | None:
    """Return a function that writes what another one changes of a parameter, into that parameter.

    Args:
        func: a function without a schedule, whose last parameter is its result.
        position: of the parameter.

    Returns:
        A function without the last parameter; None if the result is no copy of the parameter with changed elements, or
        if a changed element depends on other elements of it.
    """
    whole = _in_one_block(func)
    if whole is None or position >= len(whole.params) - 1:
        return None
    buffer, result = whole.params[position], whole.params[-1]
    if not tvm_ffi.structural_equal(list(buffer.shape), list(result.shape)):
        return None
    stores: list[bool] = []

    def store(node: tirx.BufferStore) -> Any:
        written = _changed(node, buffer) if node.buffer.same_as(result) else None
        stores.append(written is not None)
        return node if written is None else written

    def region(node: TensorRegion) -> Any:
        return tirx.BufferRegion(buffer, node.region) if node.source.same_as(result) else node

    body = tvm_ffi.structural_map(whole.body, [(tirx.BufferStore, store), (TensorRegion, region)], order="post")
    return tirx.PrimFunc(whole.params[:-1], body) if stores == [True] else None


def _in_one_block(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """Return a function with all its blocks within the one that computes the result; None if they do not go into it."""
    schedule = new_schedule(tvm.IRModule({"main": func}))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    try:
        for each in blocks[:-1]:
            schedule.compute_inline(each)
    except tvm.s_tir.ScheduleError:
        return None
    return schedule.mod["main"]


def _changed(store: tirx.BufferStore, buffer: Any) -> Any:
    """Return a store of changed elements into a buffer; None if a store does not select between it and others."""
    value = store.value
    if not isinstance(value, tirx.Select):
        return None
    here = tirx.BufferLoad(buffer, store.indices)
    if tvm_ffi.structural_equal(value.false_value, here):
        condition, new = value.condition, value.true_value
    elif tvm_ffi.structural_equal(value.true_value, here):
        condition, new = tirx.Not(value.condition), value.false_value
    else:
        return None
    loads: list[TensorLoad] = []
    for part in (condition, new):
        tvm_ffi.structural_walk(part, (TensorLoad, loads.append), order="pre")
    if any(load.source.same_as(buffer) for load in loads):
        return None
    return tirx.IfThenElse(condition, tirx.BufferStore(buffer, new, store.indices), None)
