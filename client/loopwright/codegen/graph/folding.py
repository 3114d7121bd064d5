"""Normalisations of inference, folded into the convolutions before them while their values are at hand."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax import dpl

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.rewriting import constant


def fold_normalisation(mod: tvm.IRModule) -> tvm.IRModule:
    """Multiply the scale of a normalisation into the weights of the convolution before it.

    ``(conv(x, w) [+ c] - mean) / deviation * gamma + beta`` becomes ``conv(x, w') + b'``, all of it constant but x.
    """
    data, weight, bias = dpl.wildcard(), dpl.is_const(), dpl.is_const()
    mean, deviation, gamma, beta = (dpl.is_const() for _ in range(4))
    convolution = dpl.is_op("relax.nn.conv2d")(data, weight)
    for biased in (True, False):
        start = dpl.is_op("relax.add")(convolution, bias) if biased else convolution
        centred = dpl.is_op("relax.subtract")(start, mean)
        scaled = dpl.is_op("relax.multiply")(dpl.is_op("relax.divide")(centred, deviation), gamma)
        pattern = dpl.is_op("relax.add")(scaled, beta)

        def rewrite(call: Any, found: Any, biased: bool = biased) -> Any:
            conv = found[convolution]
            values = {p: found[p].value.numpy() for p in (weight, mean, deviation, gamma, beta)}
            channels = values[weight].shape[0]
            if str(conv.attrs.kernel_layout) != "OIHW" or str(conv.attrs.out_layout) != "NCHW":
                return call
            if any(values[p].size != channels for p in (mean, deviation, gamma, beta)):
                return call
            factor = (values[gamma] / values[deviation]).reshape(channels)
            shift = values[beta].reshape(channels) - values[mean].reshape(channels) * factor
            if biased:
                added = found[bias].value.numpy()
                if added.size != channels:
                    return call
                shift = shift + added.reshape(channels) * factor
            dtype = values[weight].dtype
            scaled_weight = (values[weight] * factor.reshape(channels, 1, 1, 1)).astype(dtype)
            folded = tvm.ir.Call(conv.op, [conv.args[0], constant(scaled_weight)], conv.attrs, conv.ty_args)
            return relax.op.add(folded, constant(shift.reshape(1, channels, 1, 1).astype(dtype)))

        rewritten = mod.clone()
        for var, func in relax_funcs(mod):
            rewritten.update_func(var, dpl.rewrite_call(pattern, rewrite, func))
        mod = rewritten
    return mod
