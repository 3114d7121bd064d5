"""A sum and its normalisation over the last axis as one function, which has two outputs if both are used.

TVM ends a function before a reduction of several stages, and after what two others read: the residual connections of a
transformer would be written by one function and read by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import te, topi
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.norms import RmsNorms, rms_norm
from loopwright.codegen.graph.rewriting import dtype_of, rewrite_calls, shape_of

_PRODUCTS = ("matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d")
"""Sums that end in one of these become a part of it."""
_MOVEMENTS = ("reshape", "permute_dims", "add", "multiply")
"""What may be between a product and a sum in one function."""


def fuse_sums_with_norms(mod: tvm.IRModule) -> tvm.IRModule:
    """Make one function of sums of float32 and their layer norm, or their scaled root mean square norm."""
    return rewrite_calls(mod, _Summed)


@mutator
class _Summed(RmsNorms):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if shape_of(call) is None or dtype_of(call) != "float32":
            return call
        if name == "nn.layer_norm":
            return self._layer_norm(call)
        return self._rms_norm(call) if name == "multiply" else call

    def _layer_norm(self, call: tvm.ir.Call) -> Any:
        data, gamma, beta = call.args
        attrs, rank = call.attrs, len(shape_of(call) or ())
        if [int(axis) % rank for axis in attrs.axes] != [rank - 1]:
            return call

        def norm(x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
            return topi.nn.layer_norm(x, gamma, beta, [rank - 1], float(attrs.epsilon))

        return self._together(call, data, norm, [gamma, beta], reads=1)

    def _rms_norm(self, call: tvm.ir.Call) -> Any:
        shape = shape_of(call) or ()
        for inner, scale in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            found = self.normalised(inner) if shape_of(scale) == shape[-1:] else None
            if found is not None:
                data, epsilon, reads = found

                def norm(x: te.Tensor, scale: te.Tensor, epsilon: float = epsilon) -> te.Tensor:
                    return topi.multiply(rms_norm(x, epsilon), scale)

                return self._together(call, data, norm, [scale], reads)
        return call

    def _together(
        self, call: tvm.ir.Call, data: Any, norm: Callable[..., te.Tensor], scales: list[Any], reads: int
    ) -> Any:
        """Return the norm of ``data``, which ``norm`` computes and which reads it so many times, if that is a sum."""
        terms = self._terms(data)
        if len(terms) < 2 or shape_of(data) != shape_of(call) or any(map(self._ends_product, terms)):
            return call
        is_read = self.uses()[data] > reads

        def compute(*operands: te.Tensor) -> te.Tensor | list[te.Tensor]:
            summands, others = operands[: len(terms)], operands[len(terms) :]
            total = summands[0]
            for summand in summands[1:]:
                total = topi.add(total, summand)
            result = norm(total, *others)
            return [total, result] if is_read else result

        hint = "add_layer_norm" if len(scales) > 1 else "add_rms_norm"
        made = self.builder_.call_te(compute, *terms, *scales, primfunc_name_hint=hint)
        if not is_read:
            return made
        both = self.emit(made)
        self.set_var_remap(data, self.emit(both[0]))
        return both[1]

    def _terms(self, data: Any) -> list[Any]:
        """Return what a sum adds, in order; sums in it that nothing else reads are taken apart, too."""
        total = self.call_of(data, "add")
        if total is None:
            return [data]
        left, right = total.args
        is_inner = self.call_of(left, "add") is not None and self.uses()[left] == 1 and shape_of(left) == shape_of(data)
        return [*(self._terms(left) if is_inner else [left]), right]

    def _ends_product(self, expr: Any) -> bool:
        if self.call_of(expr, *_PRODUCTS) is not None:
            return True
        moved = self.call_of(expr, *_MOVEMENTS)
        return moved is not None and any(self._ends_product(arg) for arg in moved.args)
