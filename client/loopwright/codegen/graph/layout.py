"""The layout of convolution networks: channels last, with weights to match."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.relax.expr_functor import mutator

from loopwright.codegen.functions import prim_funcs, relax_funcs
from loopwright.codegen.graph.rewriting import (
    ELEMENTWISE,
    CallRewriter,
    dtype_of,
    op_name,
    permutation_of,
    rewrite_calls,
    shape_of,
)

PASS = "ChannelsLast"
"""Under ``tvm.transform.PassContext(disabled_pass=["ChannelsLast"])`` convolutions keep their layout."""

KEPT_LAYOUT = "loopwright.kept_layout"
"""The attribute of a module whose layout TVM could not convert; its value is TVM's reason."""
_LONGEST_REASON = 120
_LONG_LINE = 12
"""Columns of an image from which a depthwise convolution alone keeps its layout. On AMD Zen 4, lines of 14 take 0.9
times as long as with the channels last, lines of 7 take 2.4 times as long."""

_ENDS = "loopwright.ends_function"

_LAYOUTS = {"relax.nn.conv2d": ["NHWC", "HWIO"]}


def choose_layouts(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module with two-dimensional convolutions over NHWC, if their weights are constant.

    With channels last, a vector of the output is contiguous however wide an image is, and a 1x1 convolution is a
    product. The weights are transposed once, here. Inputs and outputs of functions keep their layout; what is between
    convolutions follows them. A module whose layout TVM cannot convert keeps it, and has `layout_notes`.
    """
    if PASS in tvm.transform.PassContext.current().disabled_pass or not _is_convolution_network(mod):
        return mod
    try:
        return transform.ConvertLayout(_LAYOUTS)(mod)
    except (RuntimeError, IndexError) as error:  # InternalError of TVM is a RuntimeError
        return mod.with_attr(KEPT_LAYOUT, (str(error).strip() or type(error).__name__).splitlines()[-1])


def layout_notes(mod: tvm.IRModule) -> tuple[str, ...]:
    """Return what the user should know of the layout that `choose_layouts` gave a module: one sentence, or none."""
    reason = mod.attrs.get(KEPT_LAYOUT) if mod.attrs else None
    if not isinstance(reason, str):
        return ()
    # The module may be anybody's, so that the reason may be any text.
    shown = ascii(reason[:_LONGEST_REASON])
    return (f"convolutions keep their layout: TVM cannot convert the layout of another operator ({shown})",)


def keep_layout_notes(mod: tvm.IRModule, lowered: tvm.IRModule) -> tvm.IRModule:
    """Return what a module was lowered to, with the `layout_notes` of the module."""
    return lowered.with_attr(KEPT_LAYOUT, mod.attrs[KEPT_LAYOUT]) if layout_notes(mod) else lowered


def take_in_transposes(mod: tvm.IRModule) -> tvm.IRModule:
    """Make transposes of the input of a convolution a part of it, and let those of computed tensors end functions.

    `declare_elementwise` completes the latter.
    """
    return rewrite_calls(mod, _TakenIn)


def declare_elementwise(mod: tvm.IRModule) -> tvm.IRModule:
    """Declare elementwise the transposes that may end a function, for TVM fuses nothing else with a product before it.

    Run it between the analysis of patterns, which would replace what was declared before, and fusion.
    """
    declared = mod.clone()
    for var, func in prim_funcs(mod):
        if func.attrs and _ENDS in func.attrs:
            declared.update_func(var, func.without_attr(_ENDS).with_attr("op_pattern", ELEMENTWISE))
    return declared


def _is_convolution_network(mod: tvm.IRModule) -> bool:
    """Return whether the module has convolutions, all over NCHW, and all their weights are constant.

    A single one with groups is none: transposing its input and output takes a tenth of its time. A depthwise one with
    short lines is: vectors along them would be short.
    """
    calls: list[Any] = []
    for _, func in relax_funcs(mod):
        relax.analysis.post_order_visit(func, lambda node: calls.append(node) if op_name(node) == "nn.conv2d" else None)
    if len(calls) == 1 and int(calls[0].attrs.groups) > 1:
        image, weight = map(shape_of, calls[0].args[:2])
        if image is None or weight is None or weight[1] > 1 or image[-1] >= _LONG_LINE:
            return False
    return bool(calls) and all(
        isinstance(call.args[1], tvm.ir.GenericConst)
        and (str(call.attrs.data_layout), str(call.attrs.kernel_layout)) == ("NCHW", "OIHW")
        for call in calls
    )


@mutator
class _TakenIn(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name == "nn.conv2d":
            return self._convolution(call)
        if name == "permute_dims" and shape_of(call) is not None and isinstance(self.value(call.args[0]), tvm.ir.Call):
            axes = list(permutation_of(call))
            computed = op_name(self.value(call.args[0])) != "reshape" and self.uses()[call.args[0]] <= 1
            if computed:
                return self.builder_.call_te(
                    tvm.topi.transpose,
                    call.args[0],
                    axes,
                    primfunc_name_hint="transpose",
                    primfunc_attrs={_ENDS: True},
                )
        return call

    def _convolution(self, call: tvm.ir.Call) -> Any:
        moved, attrs = self.call_of(call.args[0], "permute_dims"), call.attrs
        if moved is None or self.uses()[call.args[0]] > 1 or str(attrs.out_layout) != str(attrs.data_layout):
            return call
        axes = list(permutation_of(moved))

        def compute(data: Any, weight: Any) -> Any:
            return tvm.topi.nn.conv(
                tvm.topi.transpose(data, axes),
                weight,
                stride=[int(extent) for extent in attrs.strides],
                padding=[int(extent) for extent in attrs.padding],
                dilation=[int(extent) for extent in attrs.dilation],
                groups=int(attrs.groups),
                data_layout=str(attrs.data_layout),
                kernel_layout=str(attrs.kernel_layout),
                out_dtype=dtype_of(call),
            )

        return self.builder_.call_te(compute, moved.args[0], call.args[1], primfunc_name_hint="conv2d")
