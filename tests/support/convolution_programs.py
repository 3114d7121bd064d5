"""Convolutions and poolings that Loopwright's rules schedule."""

from __future__ import annotations

import tvm
from tvm import te, topi

from tests.support.rule_programs import function


def conv_nhwc(
    size: int, inputs: int, outputs: int, window: int, stride: int = 1, *, batch: int = 1, dilation: int = 1
) -> tvm.IRModule:
    """Return a convolution of square images with the channels last, a bias and relu."""
    x = te.placeholder((batch, size, size, inputs), name="x")
    w = te.placeholder((window, window, inputs, outputs), name="w")
    bias = te.placeholder((outputs,), name="bias")
    y = topi.nn.conv2d_nhwc(x, w, stride, dilation * (window // 2), dilation)
    return function(x, w, bias, topi.nn.relu(topi.add(y, bias)))


def conv_nchw(
    size: int, inputs: int, outputs: int, window: int, stride: int = 1, *, batch: int = 1, groups: int = 1
) -> tvm.IRModule:
    """Return a convolution of square images with the channels first, and the sum with another image."""
    x = te.placeholder((batch, inputs, size, size), name="x")
    w = te.placeholder((outputs, inputs // groups, window, window), name="w")
    if groups == 1:
        y = topi.nn.conv2d_nchw(x, w, stride, window // 2, 1)
    else:
        y = topi.nn.group_conv2d_nchw(x, w, stride, window // 2, 1, groups)
    other = te.placeholder(y.shape, name="other")
    return function(x, w, other, topi.add(y, other))


def conv_1d(size: int, inputs: int, outputs: int, window: int) -> tvm.IRModule:
    """Return a convolution of lines, with nothing after it."""
    x = te.placeholder((1, inputs, size), name="x")
    w = te.placeholder((outputs, inputs, window), name="w")
    return function(x, w, topi.nn.conv1d_ncw(x, w, 1, "VALID", 1))
