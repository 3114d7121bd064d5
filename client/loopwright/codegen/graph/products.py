"""Products in the fewest axes, whose operands are read in place."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax, te
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, permutation_of, reshaped, rewrite_calls, shape_of
from loopwright.codegen.graph.views import BufferAccess, View, access, view_of


def flatten_rows(mod: tvm.IRModule) -> tvm.IRModule:
    """Turn a product with a matrix into one of matrices between two reshapes, which are views.

    ``[b, t, k] x [k, n]`` becomes ``[b * t, k] x [k, n]``, so that rows of all batches are tiled alike and models of
    all importers have the same tasks.
    """
    return rewrite_calls(mod, _FlatRows)


def flatten_batches(mod: tvm.IRModule) -> tvm.IRModule:
    """Count through the axes of a batch: ``[b, h, t, k] x [b, h, k, n]`` becomes ``[b * h, t, k] x [b * h, k, n]``.

    Run it once permuted operands are read in place, because merging their axes may need a copy.
    """
    return rewrite_calls(mod, _FlatBatches)


def read_transposed(mod: tvm.IRModule) -> tvm.IRModule:
    """Make one function of a product and the permutations of its operands, which reads them where they lie."""
    return rewrite_calls(mod, _InPlace)


@mutator
class _FlatRows(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if name != "matmul" or shape is None or len(shape) < 3 or len(shape_of(call.args[1]) or ()) != 2:
            return call
        rows = self.emit(reshaped(call.args[0], (math.prod(shape[:-1]), (shape_of(call.args[0]) or ())[-1])))
        return reshaped(self.emit(relax.op.matmul(rows, call.args[1], call.attrs.out_dtype)), shape)


@mutator
class _FlatBatches(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if name != "matmul" or shape is None or len(shape) < 4:
            return call
        shapes = [shape_of(operand) or () for operand in call.args]
        if any(extents[:-2] != shape[:-2] for extents in shapes):
            return call
        batch = math.prod(shape[:-2])
        flat = [
            self.emit(reshaped(operand, (batch, *extents[-2:])))
            for operand, extents in zip(call.args, shapes, strict=True)
        ]
        return reshaped(self.emit(relax.op.matmul(*flat, call.attrs.out_dtype)), shape)


@mutator
class _InPlace(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if name != "matmul" or shape is None or len(shape) < 2:
            return call
        if len({dtype_of(call), *(dtype_of(operand) for operand in call.args)}) > 1:
            return call
        batch = shape[:-2]
        shapes = [shape_of(operand) or () for operand in call.args]
        if any(extents[:-2] not in (batch, ()) for extents in shapes):
            return call
        reads = [self._read(operand) for operand in call.args]
        if all(read is None for read in reads):
            return call
        taken = [_whole(operand) if read is None else read for operand, read in zip(call.args, reads, strict=True)]
        tensors = [self.emit(reshaped(read.base, read.shape)) for read in taken]
        depth = shapes[0][-1]

        def compute(left: te.Tensor, right: te.Tensor) -> te.Tensor:
            k = te.reduce_axis((0, depth), "k")

            def element(*i: Any) -> Any:
                rows = (*i[len(shape) - len(shapes[0]) : -1], k)
                columns = (*i[len(shape) - len(shapes[1]) : -2], k, i[-1])
                return te.sum(taken[0].at(left, rows) * taken[1].at(right, columns), axis=k)

            return te.compute(shape, element, name="matmul")

        return self.builder_.call_te(compute, *tensors, primfunc_name_hint="matmul")

    def _read(self, operand: Any) -> BufferAccess | None:
        """Return how to read an operand that is a permutation of a tensor; None for any other."""
        view, moved = view_of(self, operand), self.call_of(operand, "permute_dims")
        if view.factor != 1.0 or view.scales:
            if moved is None:
                return None
            view = View.of(moved.args[0], shape_of(moved.args[0]) or ()).permuted(permutation_of(moved))
        walked = [stride for extent, stride in zip(view.shape, view.strides, strict=True) if extent > 1]
        return access(view) if walked != sorted(walked, reverse=True) else None


def _whole(operand: Any) -> BufferAccess:
    found = access(View.of(operand, shape_of(operand) or ()))
    assert found is not None
    return found
