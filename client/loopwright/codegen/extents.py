"""Symbolic extents of PrimFuncs, and PrimFuncs with values in their place."""

from __future__ import annotations

from collections.abc import Mapping

import tvm


def buffer_shape(param: tvm.ir.Var) -> list[tvm.ir.Expr]:
    """Return the extents of a parameter; none if it is not a buffer."""
    return list(param.shape) if isinstance(param.ty, tvm.tirx.buffer.BufferType) else []


def symbolic_extents(func: tvm.tirx.PrimFunc) -> list[tvm.ir.Var]:
    """Return the variables that are an extent of a buffer parameter."""
    return [extent for param in func.params for extent in buffer_shape(param) if isinstance(extent, tvm.ir.Var)]


def with_extents(func: tvm.tirx.PrimFunc, values: Mapping[str, int]) -> tvm.tirx.PrimFunc:
    """Return the function with values in place of the symbolic extents of these names."""
    buffers = {}
    for param in func.params:
        extents = buffer_shape(param)
        is_bound = [isinstance(extent, tvm.ir.Var) and str(extent.name) in values for extent in extents]
        if any(is_bound):
            shape = [
                tvm.tirx.const(values[str(extent.name)], str(extent.ty)) if bound else extent
                for extent, bound in zip(extents, is_bound, strict=True)
            ]
            buffers[param] = tvm.tirx.decl_buffer(shape, param.dtype, param.name, elem_offset=param.elem_offset)
    return func.specialize(buffers) if buffers else func
