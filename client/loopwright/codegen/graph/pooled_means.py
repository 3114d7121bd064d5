"""Means of whole images that depthwise convolutions write, as of squeeze and excite: a second result of the function.

TVM ends a function before a reduction, which would read the image from a distant cache. As one function, a task adds up
what it writes while that is in the first cache.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, te, topi
from tvm.relax import transform
from tvm.relax.expr_functor import PyExprMutator, mutator

from loopwright.codegen.functions import prim_funcs, relax_funcs
from loopwright.codegen.graph.rewriting import OUTPUT_FUSABLE, CallRewriter, dtype_of, op_name, rewrite_calls, shape_of
from loopwright.codegen.graph.sinking import OPERANDS

_JOINS = "loopwright.joins_function"
"""On a PrimFunc with a mean that may become a result of the function before it."""
_PIXELS = [1, 2]
"""Axes of an image with the channels last."""
_PIXELS_AT_LEAST = 64
"""A mean of 7 x 7 pixels takes 0.5 to 1 times as long as adding them up where they are written (AMD Zen 4)."""
_VECTOR = 4
"""Channels of the shortest vectors, of which the image has a whole number."""


def note_means(mod: tvm.IRModule) -> tvm.IRModule:
    """Note which means of pixels are of what a depthwise convolution with the channels last computes."""
    return rewrite_calls(mod, _Noted)


def fuse(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a legalised module after ``FuseOps``, in which the means that were noted are results of functions."""
    fused = transform.FuseOps()(mod)
    noted = [(var, func) for var, func in prim_funcs(fused) if _JOINS in (func.attrs or {})]
    if not noted:
        return fused
    joined = _Joined(fused)
    for var, func in relax_funcs(fused):
        joined.find(func)
        if joined.means:
            joined.builder_.update_func(var, joined.visit_expr(func))
    result = joined.builder_.get()
    for var, func in noted:
        result.update_func(var, func.without_attr(_JOINS))
    return transform.DeadCodeElimination()(result)


def mean(image: te.Tensor, keepdims: bool = True) -> te.Tensor:
    """Return the mean of the pixels of an image of float32 with the channels last."""
    count = int(image.shape[1]) * int(image.shape[2])
    return topi.divide(topi.sum(image, _PIXELS, keepdims), float(count))


@mutator
class _Noted(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        image = shape_of(call.args[0]) if name == "mean" else None
        if image is None or len(image) != 4 or image[-1] % _VECTOR:
            return call
        if min(image[1:3]) == 1 or image[1] * image[2] < _PIXELS_AT_LEAST:
            return call
        axes = sorted(int(axis) % 4 for axis in call.attrs.axis or ())
        if axes != _PIXELS or dtype_of(call) != "float32" or not self._is_depthwise(call.args[0]):
            return call
        return self.builder_.call_te(
            mean, call.args[0], bool(call.attrs.keepdims), primfunc_name_hint="mean", primfunc_attrs={_JOINS: True}
        )

    def _is_depthwise(self, expr: Any) -> bool:
        """Return whether a tensor is a depthwise convolution, or computed from one and others, element by element."""
        seen: list[Any] = []
        operands = [expr]
        while operands:
            operand = operands.pop()
            call = self.value(operand)
            if shape_of(operand) != shape_of(expr) or any(call.same_as(each) for each in seen):
                continue
            seen.append(call)
            if op_name(call) == "nn.conv2d":
                groups, layout = int(call.attrs.groups), str(call.attrs.out_layout)
                return layout == "NHWC" and groups == (shape_of(call) or ())[-1]
            operands.extend(call.args if op_name(call) in OPERANDS else ())
        return False


@mutator
class _Joined(PyExprMutator):
    """Joins means with the functions that compute what they are of."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.means: dict[relax.Var, relax.VarBinding] = {}
        """Bindings of means, by the variables that they are of."""
        self.results: dict[relax.Var, Any] = {}
        """Of the joined functions, by the variables that means are bound to."""

    def find(self, func: relax.Function) -> None:
        """Note the means of what fused functions with a convolution compute."""
        self.means = {}
        for block in func.body.blocks:
            makers = {binding.var: binding.value.op for binding in block.bindings if _is_call(binding.value)}
            for binding in filter(lambda binding: self._is_mean(binding.value), block.bindings):
                [image] = binding.value.args[1].fields
                if image in makers and self._has_convolution(makers[image]):
                    self.means.setdefault(image, binding)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var in self.results:
            self.set_var_remap(binding.var, self.results.pop(binding.var))
            return
        of_it = self.means.get(binding.var)
        if of_it is None:
            super().visit_var_binding_(binding)
            return
        call = self.visit_expr(binding.value)
        joined = self.builder_.add_func(_with_mean(self.mod[call.op], of_it.value), f"{call.op.name_hint}_mean")
        both = self.builder_.emit(tvm.ir.Call(joined, call.args))
        image, mean = (self._emit(var, relax.TupleGetItem(both, n)) for n, var in enumerate((binding.var, of_it.var)))
        self.set_var_remap(binding.var, image)
        self.results[of_it.var] = mean

    def _emit(self, var: relax.Var, value: Any) -> relax.Var:
        """Bind a value to a variable of the kind of another one."""
        is_local = isinstance(var, relax.DataflowVar)
        return self.builder_.emit(value) if is_local else self.builder_.emit_output(value)

    def _is_mean(self, value: Any) -> bool:
        return op_name(value) == "call_tir" and _JOINS in (self.mod[value.args[0]].attrs or {})

    def _has_convolution(self, function: tvm.ir.GlobalVar) -> bool:
        bindings = [binding for block in self.mod[function].body.blocks for binding in block.bindings]
        called = [self.mod[binding.value.args[0]] for binding in bindings if op_name(binding.value) == "call_tir"]
        return any((func.attrs or {}).get("op_pattern") == OUTPUT_FUSABLE for func in called)


def _is_call(value: Any) -> bool:
    return isinstance(value, tvm.ir.Call) and isinstance(value.op, tvm.ir.GlobalVar)


def _with_mean(func: relax.Function, mean: tvm.ir.Call) -> relax.Function:
    """Return a fused function that also computes the mean of its result."""
    func = relax.utils.copy_with_new_vars(func)
    [block] = func.body.blocks
    result = func.body.body
    call = tvm.ir.Call(mean.op, [mean.args[0], relax.Tuple([result])], mean.attrs, mean.ty_args, mean.span, mean.ty)
    var = relax.Var("mean", mean.ty)
    blocks = [relax.DataflowBlock([*block.bindings, relax.VarBinding(var, call)])]
    both = relax.Tuple([result, var])
    return relax.Function(func.params, relax.SeqExpr(blocks, both), both.ty, func.is_pure, func.attrs)
