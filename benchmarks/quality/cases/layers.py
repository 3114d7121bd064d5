"""Modules of the single operators that PyTorch does not have in this form."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Product(nn.Module):
    """``x @ w`` with a weight of ``[k, n]``."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(k, n) / math.sqrt(k))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Int8Product(nn.Module):
    """``x @ w`` in int32, with a weight of ``[k, n]`` in int8."""

    weight: Tensor

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (k, n), dtype=torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        return torch._int_mm(x, self.weight)


class BatchedProduct(nn.Module):
    """``a @ b`` for each of a batch of matrices; neither is a weight."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b)


class RMSNorm(nn.Module):
    """``x / rms(x) * w`` over the last axis."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(features))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight


class Sum(nn.Module):
    """The sum over one axis."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(self.axis)


class Attention(nn.Module):
    """Scores, softmax and product with the values, as PyTorch's own function or written out."""

    def __init__(self, *, written_out: bool) -> None:
        super().__init__()
        self.written_out = written_out

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not self.written_out:
            return functional.scaled_dot_product_attention(q, k, v)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (1 / math.sqrt(q.shape[-1]))
        return torch.matmul(torch.softmax(scores, -1), v)


def conv_bn_relu(
    inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Return a convolution that keeps the extent (over the stride), with normalisation and activation."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), activation())
