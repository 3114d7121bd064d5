"""Relax modules as their functions are tuned: legalised, folded and fused."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.target import Target

_OPAQUE = 8
"""``relax::OpPatternKind::kOpaque``: a function that is fused with no other."""


def has_relax(mod: tvm.IRModule) -> bool:
    return any(isinstance(func, relax.Function) for func in mod.functions.values())


def lower(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module through TVM's pipeline ``zero``; as it is where there is no Relax. Equal to the client's.

    Raises RuntimeError where TVM cannot.
    """
    if not has_relax(mod):
        return mod
    pipeline = relax.get_pipeline("zero")
    with target:
        try:
            return pipeline(mod)
        except RuntimeError:
            # People write extents of 32 bits, operators are legalised to 64, and TVM fails to fuse one with the other.
            return pipeline(_kept_apart(mod))


def _kept_apart(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its own PrimFuncs fused with nothing."""
    apart = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            apart.update_func(var, func.with_attr("op_pattern", _OPAQUE))
    return apart
