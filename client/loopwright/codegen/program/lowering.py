"""From a model's module to the functions that are tuned: symbolic extents bound, Relax legalised and fused."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.target import Target

from loopwright.codegen.cpu.vector_math import keep_exact_math
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.extents import symbolic_extents, with_extents
from loopwright.codegen.functions import has_relax, prim_funcs, relax_funcs
from loopwright.codegen.gpu.tf32 import keep_tf32
from loopwright.codegen.graph.layout import declare_elementwise, keep_layout_notes
from loopwright.codegen.graph.pooled_means import fuse
from loopwright.codegen.graph.preparation import KEPT, prepare
from loopwright.codegen.graph.rewriting import OPAQUE
from loopwright.codegen.graph.sources import with_places
from loopwright.codegen.program import extremes, quantising
from loopwright.codegen.program.clamping import clamp
from loopwright.codegen.program.own_calls import bind_calls
from loopwright.codegen.weights.layout_free import declare_weights
from loopwright.codegen.weights.shared_weights import keep_sharing


def lower(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return the module prepared, legalised and fused; the functions of a module without Relax stay as they are.

    Its Relax functions call PrimFuncs and ``reshape``, which is a view. The PrimFuncs name their weights, and keep
    inside of their buffers whatever indices they are given.

    Raises:
        RuntimeError: TVM cannot lower the module.
    """
    if not has_relax(mod):
        return declare_weights(mod)
    with target:
        prepared = prepare(bind_calls(mod), target)
        try:
            lowered = _legalised_and_fused(prepared)
        except RuntimeError:
            # People write extents of 32 bits, operators are legalised to 64, and TVM fails to fuse one with the other.
            lowered = _legalised_and_fused(_kept_apart(prepared))
    kept = keep_layout_notes(mod, keep_tf32(mod, keep_exact_math(mod, lowered)))
    return keep_sharing(mod, declare_weights(clamp(kept)))


def _legalised_and_fused(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module after the passes of TVM's pipeline ``zero``, but for the operators that are kept.

    And without ``FoldConstant``, which compiles and calls functions: a service must not run what it was sent in order
    to read it. Constants are folded before, by NumPy.
    """
    for apply in (
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps({**extremes.LEGALIZATIONS, **quantising.LEGALIZATIONS}, skip_ops=list(KEPT)),
        relax.transform.AnnotateTIROpPattern(),
        declare_elementwise,
    ):
        mod = apply(mod)
    return with_places(mod, relax.transform.FuseTIR()(fuse(mod)))


def bind_shapes(mod: tvm.IRModule, shapes: dict[str, int]) -> tvm.IRModule:
    """Return the module with symbolic extents bound by name, in Relax functions and PrimFuncs alike.

    A PrimFunc that Relax functions call has the extents of its calls, whatever names it has for them.

    Raises:
        InvalidModule: the module has no symbolic extent of a name, an extent is below 1 or outside of the range that
            the module declares for it, or a call contradicts itself.
    """
    if not shapes:
        return mod
    if empty := sorted(name for name, extent in shapes.items() if extent < 1):
        raise InvalidModule(f"shapes gives {', '.join(empty)} less than one element; give the extent to tune for")
    in_relax = relax_symbols(mod)
    in_tir = {str(extent.name) for _, func in prim_funcs(mod) for extent in symbolic_extents(func)}
    if unknown := sorted(set(shapes) - in_relax - in_tir):
        raise InvalidModule(
            f"shapes names {', '.join(unknown)}, which the module does not have; its symbolic extents are: "
            f"{', '.join(sorted(in_relax | in_tir)) or 'none'}"
        )
    _check_ranges(mod, shapes)
    bound = bind_calls(relax.transform.BindSymbolicVars({n: e for n, e in shapes.items() if n in in_relax})(mod))
    if relax_symbols(bound):
        return bound  # what is left symbolic of a PrimFunc is for its callers to say
    result = bound.clone()
    for var, func in prim_funcs(bound):
        result[var] = with_extents(func, shapes)
    return result


def _check_ranges(mod: tvm.IRModule, shapes: dict[str, int]) -> None:
    """Refuse extents outside of the ranges in the attributes of Relax functions, such as PyTorch's ``Dim``s."""
    for _, func in relax_funcs(mod):
        least, most = _limits(func, "tir_var_lower_bound"), _limits(func, "tir_var_upper_bound")
        for name, extent in shapes.items():
            # PyTorch writes 2 for extents without a lower bound, too, and runs such a program with the extent 1.
            low = least[name] if least.get(name, 0) > 2 else 1
            if not low <= extent <= most.get(name, extent):
                allowed = f"{low} to {most[name]}" if name in most else f"{low} or more"
                raise InvalidModule(
                    f"shapes gives {name} the extent {extent}, but the model declares {allowed} for it; give an extent "
                    "in this range, or declare another range in the model"
                )


def _limits(func: relax.Function, attribute: str) -> dict[str, int]:
    found = func.attrs[attribute] if func.attrs and attribute in func.attrs else {}
    return {str(name): int(limit) for name, limit in found.items()}


def relax_symbols(mod: tvm.IRModule) -> set[str]:
    """Return the names of the symbolic extents of a module's Relax functions."""
    return {str(symbol.name) for _, func in relax_funcs(mod) for symbol in _symbols(func)}


def _kept_apart(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module with its own PrimFuncs marked, so that they are fused with nothing."""
    apart = mod.clone()
    for var, func in prim_funcs(mod):
        apart.update_func(var, func.with_attr("op_pattern", OPAQUE))
    return apart


def _symbols(func: relax.Function) -> list[tvm.ir.Var]:
    return [*relax.analysis.free_symbolic_vars(func), *relax.analysis.defined_symbolic_vars(func)]
