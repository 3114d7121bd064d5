"""Calls of PyTorch that may compute what a function on a GPU computes, chosen by the shapes of its arguments.

``torch`` is the module, which not every worker has; tensors are PyTorch's and contiguous. A call writes to memory of
its own where the operator can do that. Whether it computes the function's result is for the caller to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, permutations, product
from typing import Any

import numpy as np

Tensor = Any
Call = Callable[[], Tensor]
Shape = tuple[int, ...]
Sum = tuple[Call, Sequence[Tensor]]
"""A call, and what is still to be added to its result."""

_MOST_INPUTS = 4
"""An image, a weight, a bias and another image that is added."""
_STRIDES = (1, 2)
_PADDINGS = range(4)
_EPSILON = 1e-5
"""Of layer norms. Between 1e-12 and 1e-5 their results on normal inputs differ by less than the tolerance."""
_NARROW = ("float16", "bfloat16")


def candidates(torch: Any, tensors: Sequence[Tensor], shape: Shape, dtype: str) -> Iterator[Call]:
    """Yield calls that use all of ``given`` and have a result of the shape.

    A product or a convolution of float16 or bfloat16 whose result is float32 is tried with a result of the inputs'
    type, too: cuDNN has no other convolutions, and PyTorch has other products for CUDA alone. cuBLAS and cuDNN add up
    in float32 and round once.
    """
    if not 1 <= len(tensors) <= _MOST_INPUTS:
        return
    yield from _row_operations(torch, tensors, shape, dtype)
    for positions in permutations(range(len(tensors)), 2):
        left, right = (tensors[position] for position in positions)
        addends = [tensor for position, tensor in enumerate(tensors) if position not in positions]
        if left.dtype != right.dtype:
            continue
        for main, rest in chain(
            _products(torch, left, right, addends, shape, dtype),
            _convolutions(torch, left, right, addends, shape, dtype),
        ):
            if all(_broadcast(addend.shape, shape) == shape for addend in rest):
                for activation in _activations(torch):
                    yield partial(_finished, main, rest, activation)


def _finished(main: Call, addends: Sequence[Tensor], activation: Callable[[Tensor], Tensor]) -> Tensor:
    result = main()
    for addend in addends:
        result.add_(addend)
    return activation(result)


def _activations(torch: Any) -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield functions of a tensor that may be overwritten."""
    functional = torch.nn.functional
    yield lambda result: result
    yield torch.relu_
    yield functional.gelu
    yield partial(functional.gelu, approximate="tanh")
    yield partial(functional.silu, inplace=True)


def _row_operations(torch: Any, tensors: Sequence[Tensor], shape: Shape, dtype: str) -> Iterator[Call]:
    """Yield softmax, its logarithm and layer norm over the last axis."""
    functional = torch.nn.functional
    for x, *factors in permutations(tensors):
        if tuple(x.shape) != shape or not shape or not x.is_floating_point() or len(factors) > 2:
            continue
        if not factors:
            out = torch.empty(shape, dtype=getattr(torch, dtype), device=x.device)
            yield partial(torch.softmax, x, -1, dtype=out.dtype, out=out)
            yield partial(torch.log_softmax, x, -1, dtype=out.dtype, out=out)
        if all(factor.numel() == shape[-1] for factor in factors):
            scale_and_shift = [factor.reshape(shape[-1:]) for factor in factors]
            yield partial(functional.layer_norm, x, shape[-1:], *scale_and_shift, eps=_EPSILON)


def _products(
    torch: Any, left: Tensor, right: Tensor, addends: Sequence[Tensor], shape: Shape, dtype: str
) -> Iterator[Sum]:
    """Yield matrix products, batched or not, plain and with the second factor transposed."""
    if min(left.ndim, right.ndim) < 2:
        return
    for factor in (right, right.transpose(-1, -2)):
        leading = _broadcast(left.shape[:-2], factor.shape[:-2])
        if left.shape[-1] != factor.shape[-2] or leading is None:
            continue
        if (*leading, left.shape[-2], factor.shape[-1]) != shape:
            continue
        for result in _result_types(left, dtype):
            out = torch.empty(shape, dtype=getattr(torch, result), device=left.device)
            yield _product(torch, left, factor, addends, out)


def _product(torch: Any, left: Tensor, factor: Tensor, addends: Sequence[Tensor], out: Tensor) -> Sum:
    """Return the product of two tensors in ``out``, by as few kernels as PyTorch has it."""
    into = out
    if factor.ndim == 2:
        # Several matrices by the same one are a single product, with the rows of all of them.
        left, into = left.reshape(-1, left.shape[-1]), out.view(-1, out.shape[-1])
    call: Call
    if left.dtype == torch.int8:
        call = partial(torch._int_mm, left, factor, out=into)
    elif left.dtype != out.dtype:
        operator = torch.mm if factor.ndim == 2 else torch.bmm
        call = partial(operator, left, factor, out_dtype=out.dtype, out=into)
    elif factor.ndim == 2 and addends and addends[0].shape == out.shape[-1:] and addends[0].dtype == out.dtype:
        call = partial(torch.addmm, addends[0], left, factor, out=into)
        addends = addends[1:]
    else:
        call = partial(torch.matmul, left, factor, out=into)
    return partial(_written, call, out), addends


def _written(call: Call, out: Tensor) -> Tensor:
    call()
    return out


def _result_types(factor: Tensor, dtype: str) -> list[str]:
    """Return the types that a library may give a product or a convolution whose result is ``dtype``."""
    own = str(factor.dtype).removeprefix("torch.")
    if own in _NARROW and dtype == "float32":
        return [dtype, own]
    return [dtype] if own == dtype or (own, dtype) == ("int8", "int32") else []


def _convolutions(
    torch: Any, image: Tensor, weight: Tensor, addends: Sequence[Tensor], shape: Shape, dtype: str
) -> Iterator[Sum]:
    """Yield convolutions of two dimensions, grouped and depthwise ones among them, with the channels first or last.

    Images and weights are NCHW and OIHW, or NHWC and HWIO. Strides and paddings follow from the shapes.
    """
    if not image.ndim == weight.ndim == len(shape) == 4 or not _result_types(image, dtype):
        return
    biases = [addend.reshape(-1, 1, 1) if addend.ndim == 1 else addend for addend in addends]
    for call in _channels_first(torch, image, weight, shape, torch.contiguous_format):
        yield call, biases
    batch, height, width, filters = shape
    views = image.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1)
    for call in _channels_first(torch, *views, (batch, filters, height, width), torch.channels_last):
        yield partial(_with_channels_last, call), addends


def _channels_first(torch: Any, image: Tensor, weight: Tensor, shape: Shape, layout: Any) -> Iterator[Call]:
    """Yield convolutions of NCHW and OIHW; ``layout`` is how they lie in memory."""
    batch, channels, *extents = image.shape
    filters, per_group, *window = weight.shape
    if channels % per_group or filters % (channels // per_group) or (batch, filters) != shape[:2]:
        return
    for stride, *padding in product(_STRIDES, _PADDINGS, _PADDINGS):
        if all(
            (extent + 2 * pad - taps) // stride + 1 == result
            for extent, pad, taps, result in zip(extents, padding, window, shape[2:], strict=True)
        ):
            yield partial(
                torch.nn.functional.conv2d,
                image,
                weight.contiguous(memory_format=layout),
                stride=stride,
                padding=tuple(padding),
                groups=channels // per_group,
            )


def _with_channels_last(call: Call) -> Tensor:
    return call().permute(0, 2, 3, 1)


def _broadcast(*shapes: Sequence[int]) -> Shape | None:
    """Return the shape that tensors of several shapes have together, or None."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        return None
