"""Operators of PyTorch that have no translation of their own, in terms of operators that have one.

PyTorch's own decompositions into core operators end at these, or lead to operators that are in no public set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

from loopwright.frontends.torch import complex_numbers
from loopwright.frontends.torch.recurrent import without_layers

_aten = torch.ops.aten

_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
    0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
"""The polynomial of `_erfc`, its lowest coefficient first."""


def table(program: Any) -> dict[Any, Callable[..., Any]]:
    """Return the decompositions for ``run_decompositions`` of an exported program: PyTorch's own, but for recurrent
    layers, and those of this file."""
    decompositions = torch.export.default_decompositions()
    decompositions.update(_DECOMPOSITIONS)
    return without_layers(decompositions, program)


def _addmv(self: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    bias = self.expand(mat.shape[0]).unsqueeze(1)
    return torch.addmm(bias, mat, vec.unsqueeze(1), beta=beta, alpha=alpha).squeeze(1)


def _addbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    rows = batch1.permute(1, 0, 2).reshape(batch1.shape[1], -1)
    columns = batch2.reshape(-1, batch2.shape[2])
    return torch.addmm(self.expand(rows.shape[0], columns.shape[1]), rows, columns, beta=beta, alpha=alpha)


def _signbit(self: Any) -> Any:
    """Return whether a number is negative, also for -0.0; NaN counts as positive."""
    if not self.dtype.is_floating_point:
        return self < 0
    return (self < 0) | ((self == 0) & (1 / self < 0))


def _copysign(self: Any, other: Any) -> Any:
    dtype = torch.result_type(self, other)
    size = self.to(dtype if dtype.is_floating_point else torch.get_default_dtype()).abs()
    if not isinstance(other, torch.Tensor):
        return -size if math.copysign(1.0, other) < 0 else size
    return torch.where(_signbit(other), -size, size)


def _without_nan(extreme: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the extreme of two numbers that is the other number if one is NaN."""

    def either(self: Any, other: Any) -> Any:
        result = extreme(self, other)
        return torch.where(self != self, other, torch.where(other != other, self, result)).to(result.dtype)

    return either


def _hypot(self: Any, other: Any) -> Any:
    """Return the root of the sum of squares, none of which overflows."""
    large, small = torch.maximum(self.abs(), other.abs()), torch.minimum(self.abs(), other.abs())
    ratio = torch.where(large == 0, 0, small / large)
    infinite = torch.isinf(self) | torch.isinf(other)
    return torch.where(infinite, float("inf"), large * torch.sqrt(1 + ratio * ratio))


def _erfc(self: Any) -> Any:
    """Return 1 - erf(x), whose digits far from 0 a subtraction would lose, in float32 or less.

    t exp(p(t) - x²) with t = 1 / (1 + |x| / 2) and a polynomial p, in float64. (Press, Teukolsky, Vetterling and
    Flannery, Numerical Recipes, chapter 6.2: the relative error is below 1.2e-7 for all x.)
    """
    if self.dtype == torch.float64:
        return NotImplemented
    wide, dtype = self.double(), self.dtype if self.dtype.is_floating_point else torch.get_default_dtype()
    t = 1 / (1 + 0.5 * wide.abs())
    polynomial = torch.full_like(t, _ERFC[-1])
    for coefficient in reversed(_ERFC[:-1]):
        polynomial = polynomial * t + coefficient
    tail = t * torch.exp(polynomial - wide * wide)
    return torch.where(wide < 0, 2 - tail, tail).to(dtype)


def _ldexp(self: Any, other: Any) -> Any:
    return self * torch.pow(2.0, other)


def _as_strided(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return elements by their places in the memory of a tensor that fills it, in any order of its axes.

    Raises:
        NotImplementedError: the tensor is, or may be, a part of its memory.
    """
    offset = storage_offset or 0
    if any(isinstance(each, torch.SymInt) for each in (*self.shape, *size, *stride, offset)):
        raise NotImplementedError("as_strided of symbolic extents")
    memory = self.permute(sorted(range(self.dim()), key=self.stride, reverse=True))
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if self.storage_offset() or not memory.is_contiguous() or last >= self.numel():
        raise NotImplementedError("as_strided of a tensor that is a part of its memory; call contiguous() on it first")
    places = torch.full((), offset, dtype=torch.int64, device=self.device)
    for extent, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(extent, device=self.device) * step
    return memory.reshape(-1).index_select(0, places.reshape(-1)).reshape(size)


def _dist(self: Any, other: Any, p: Any = 2) -> Any:
    return torch.linalg.vector_norm(self - other, p)


def _cdist(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    distance = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 0:  # the number of coordinates that differ, or NaN
        return torch.where(distance != distance, distance, (distance != 0).to(distance.dtype)).sum(-1)
    if p == math.inf:  # the greatest distance, without NaN
        return torch.where(distance != distance, 0, distance.abs()).amax(-1)
    return torch.linalg.vector_norm(distance, p, -1)


def _diagonal_scatter(self: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    places = torch.arange(self.numel(), device=self.device).reshape(self.shape).diagonal(offset, dim1, dim2)
    return self.reshape(-1).scatter(0, places.reshape(-1), src.reshape(-1)).reshape(self.shape)


def _masked_scatter(self: Any, mask: Any, source: Any) -> Any:
    self, mask = torch.broadcast_tensors(self, mask)
    places = mask.reshape(-1).cumsum(0) - 1
    taken = source.reshape(-1)[places.clamp(0, source.numel() - 1)].reshape(self.shape)
    return torch.where(mask, taken, self)


def _put(self: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    flat = self.reshape(-1)
    return flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(self.shape)


def _scatter_reduce(self: Any, dim: int, index: Any, value: Any, *, reduce: str) -> Any:
    kind = {"add": "sum", "multiply": "prod"}[reduce]
    source = value if isinstance(value, torch.Tensor) else torch.full(index.shape, value, dtype=self.dtype)
    return self.scatter_reduce(dim, index, source, kind)


def _index_reduce(self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    if not self.dim():
        return NotImplemented
    places = index.reshape([-1 if axis == dim % self.dim() else 1 for axis in range(self.dim())]).expand(source.shape)
    return self.scatter_reduce(dim, places, source, reduce, include_self=include_self)


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Return the rows of each bag together; only the first of the four results is PyTorch's."""
    count = offsets.shape[0] - include_last_offset
    places = torch.arange(indices.shape[0], device=indices.device)
    bags = (places.unsqueeze(1) >= offsets).sum(1) - 1
    if padding_idx >= 0:  # a bag behind the others takes what counts in none
        bags = torch.where(indices == padding_idx, count, bags)
    rows = weight.index_select(0, indices).to(torch.promote_types(weight.dtype, torch.float32))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.to(rows.dtype).unsqueeze(1)
    kind = ("sum", "mean", "amax")[mode]
    empty = torch.zeros(count + 1, weight.shape[1], dtype=rows.dtype, device=weight.device)
    found = empty.scatter_reduce(0, bags.unsqueeze(1).expand(rows.shape), rows, kind, include_self=False)
    return found[:count].to(weight.dtype), bags, bags, bags


def _angle(self: Any) -> Any:
    if self.is_complex():
        return torch.atan2(self.imag, self.real)
    if not self.dtype.is_floating_point:
        return torch.where(self < 0, math.pi, 0.0)
    half_turn = torch.full_like(self, math.pi)  # a number would be rounded to float32
    return torch.where(self != self, self, torch.where(self < 0, half_turn, torch.zeros_like(self)))


def _is_before(row: Any, value: Any, right: bool) -> Any:
    """Return whether elements of sorted rows come before values, or before what follows them; NaN is behind all."""
    if not isinstance(value, torch.Tensor):
        value = torch.full((), value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
    is_nan = value != value
    return (row <= value) | is_nan if right else (row < value) | (is_nan & (row == row))


def _searchsorted(
    sorted_sequence: Any,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    row = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    value = self.unsqueeze(-1) if isinstance(self, torch.Tensor) else self
    row = row.unsqueeze(-2) if row.dim() > 1 else row
    return _is_before(row, value, right or side == "right").sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _bucketize(self: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(boundaries, self, out_int32=out_int32, right=right)


def _with_axis(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decomposition of an operator along an axis for tensors without axes, which get one."""

    def decomposed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.dim():
            return NotImplemented
        row, others = tree_map(
            lambda value: value.reshape(1) if isinstance(value, torch.Tensor) else value, (self, args)
        )
        return tree_map(lambda result: result.reshape(()), operator(row, *others, **kwargs))

    return decomposed


_ALONG_AN_AXIS = (
    _aten._log_softmax.default,
    _aten._softmax.default,
    _aten.argmax.default,
    _aten.argmin.default,
    _aten.gather.default,
    _aten.index_select.default,
    _aten.kthvalue.default,
    _aten.logsumexp.default,
    _aten.median.dim,
    _aten.nanmedian.dim,
    _aten.scatter.src,
    _aten.scatter.value,
    _aten.scatter_add.default,
    _aten.scatter_reduce.two,
    _aten.sort.default,
    _aten.sort.stable,
    _aten.topk.default,
)

_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    _aten._cdist_forward.default: _cdist,
    _aten._embedding_bag.default: _embedding_bag,
    _aten._embedding_bag_forward_only.default: _embedding_bag,
    _aten.addbmm.default: _addbmm,
    _aten.addmv.default: _addmv,
    _aten.angle.default: _angle,
    _aten.as_strided.default: _as_strided,
    _aten.as_strided_copy.default: _as_strided,
    _aten.bucketize.Scalar: _bucketize,
    _aten.bucketize.Tensor: _bucketize,
    _aten.copysign.Scalar: _copysign,
    _aten.copysign.Tensor: _copysign,
    _aten.diagonal_scatter.default: _diagonal_scatter,
    _aten.dist.default: _dist,
    _aten.erfc.default: _erfc,
    _aten.fmax.default: _without_nan(torch.maximum),
    _aten.fmin.default: _without_nan(torch.minimum),
    _aten.hypot.default: _hypot,
    _aten.index_reduce.default: _index_reduce,
    _aten.ldexp.Tensor: _ldexp,
    _aten.masked_scatter.default: _masked_scatter,
    _aten.narrow_copy.default: torch.narrow,
    _aten.permute_copy.default: torch.permute,
    _aten.put.default: _put,
    _aten.scatter.reduce: _scatter_reduce,
    _aten.scatter.value_reduce: _scatter_reduce,
    _aten.searchsorted.Scalar: _searchsorted,
    _aten.searchsorted.Tensor: _searchsorted,
    _aten.signbit.default: _signbit,
    _aten.unbind_copy.int: torch.unbind,
    _aten.view_copy.default: torch.reshape,
    **{operator: _with_axis(operator) for operator in _ALONG_AN_AXIS},
    **complex_numbers.DECOMPOSITIONS,
}
