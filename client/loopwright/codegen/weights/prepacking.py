"""Weights that a schedule packs once, before the calls, instead of in each call.

A schedule marks the block that packs (`loopwright.codegen.weights.packed_weight`). TVM's pass takes such blocks out
of a function, into one of their own.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import relax

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.scheduling_lock import SCHEDULING
from loopwright.codegen.weights.layout_free import weight_of
from loopwright.codegen.weights.packed_weight import PACK, PACKS, PackedWeight


def split(mod: tvm.IRModule) -> tuple[tvm.IRModule, PackedWeight | None]:
    """Take the packing of the weight out of a scheduled module's ``main``.

    Returns:
        The module with ``main``, which takes the packed weight in place of the weight, and the function `PACK`, which
        packs the weight (its first argument) into the second one; and what ``main`` takes. A module without packing is
        returned as it is, with None.
    """
    func = mod["main"]
    weight = weight_of(func)
    if weight is None or not _packs(func):
        return mod, None
    parts = {str(var.name_hint): part for var, part in prim_funcs(_split(_called(func)))}
    main, pack = parts["main_prepacked"], parts["main_weight_prepack"]
    packed = main.params[weight]
    functions = {"main": main, PACK: pack}
    return (
        tvm.IRModule({name: part.with_attr("global_symbol", name) for name, part in functions.items()}),
        PackedWeight(weight, tuple(map(int, packed.shape)), str(packed.dtype)),
    )


def fold_packing(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a Relax module whose scheduled functions take packed weights.

    Weights that are constants are packed now; the Relax functions pack the others, before each call.
    """
    if not any(_packs(func) for _, func in prim_funcs(mod)):
        return mod
    fold = (relax.transform.FoldConstant(), relax.transform.DeadCodeElimination())
    return tvm.transform.Sequential(fold)(_split(mod))


def _packs(func: tvm.tirx.PrimFunc) -> bool:
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(func.body, (tvm.s_tir.SBlock, blocks.append), order="pre")
    return any(PACKS in block.annotations for block in blocks)


def _split(mod: tvm.IRModule) -> tvm.IRModule:
    """Split the functions that pack. TVM's pass sees no others, as it fails at those without a block to compute."""
    apart = [var for var, func in prim_funcs(mod) if not _packs(func)]
    functions = {var: func for var, func in mod.functions.items() if var not in apart}
    result = relax.transform.SplitLayoutRewritePreproc()(tvm.IRModule(functions, mod.attrs))
    for var in apart:
        result.update_func(var, mod[var])
    return result


def _called(func: tvm.tirx.PrimFunc) -> tvm.IRModule:
    """Return a module whose Relax function calls a PrimFunc, as TVM's pass wants it."""
    types = [relax.TensorType(param.shape, param.dtype) for param in func.params]
    builder = relax.BlockBuilder()
    callee = builder.add_func(func, "main")
    arguments = [relax.Var(f"argument_{n}", each) for n, each in enumerate(types[:-1])]
    with SCHEDULING, builder.function("call", arguments):
        with builder.dataflow():
            result = builder.emit_output(relax.call_tir(callee, arguments, types[-1]))
        builder.emit_func_output(result)
    return builder.get()
