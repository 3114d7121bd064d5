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


class Int8Weights(nn.Module):
    """``x @ w`` with a weight of ``[n, k]`` in int8, and a scale for each of its rows."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (n, k), dtype=torch.int8))
        self.register_buffer("scale", (torch.rand(n) + 0.5) / (64 * math.sqrt(k)))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.to(x.dtype)) * self.scale


class BlockProduct(nn.Module):
    """``x @ w`` with a weight of ``[n, k]`` in 4 bits, two in a byte, and a scale for each block of a row."""

    weight: Tensor
    scale: Tensor

    def __init__(self, k: int, n: int, size: int = 32) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("weight", torch.randint(0, 256, (n, k // size, size // 2), dtype=torch.uint8))
        self.register_buffer("scale", (torch.rand(n, k // size) + 0.5) / (4 * math.sqrt(k)))

    def forward(self, x: Tensor) -> Tensor:
        numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).flatten(2).to(x.dtype) - 8
        return functional.linear(x, (numbers * self.scale[..., None]).flatten(1))


class QuantisedConvolution(nn.Module):
    """A convolution of integers with ReLU, whose input and output are rounded to uint8.

    Weights are within 6 bits and a sign: the sums of no engine saturate.
    """

    weight: Tensor
    scale: Tensor
    STEP, ZERO = 0.03125, 128
    """Of the input; the output has the same step, and 0."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.padding = kernel // 2
        self.register_buffer("weight", torch.randint(-63, 64, (outputs, inputs, kernel, kernel), dtype=torch.int8))
        self.register_buffer("scale", (torch.rand(outputs) + 0.5) / (36 * math.sqrt(inputs * kernel * kernel)))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype) * self.scale[:, None, None, None]
        sums = functional.conv2d(self._rounded(x, self.ZERO), weight, padding=self.padding)
        return self._rounded(functional.relu(sums), 0)

    def _rounded(self, x: Tensor, zero: int) -> Tensor:
        return (torch.clamp(torch.round(x / self.STEP) + zero, 0, 255) - zero) * self.STEP


class DecodeAttention(nn.Module):
    """Attention of one query, whose heads share keys and values in groups."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (self._repeated(each, q.shape[1]) for each in (k, v))
        return functional.scaled_dot_product_attention(q, keys, values)

    def _repeated(self, x: Tensor, heads: int) -> Tensor:
        batch, groups, rows, width = x.shape
        return x[:, :, None].expand(batch, groups, heads // groups, rows, width).reshape(batch, heads, rows, width)


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


class Residual(nn.Module):
    """The sum of two tensors and its norm, both of which are used."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total = x + y
        return torch.cat([total, self.norm(total)], -1)


class Recurrent(nn.Module):
    """The outputs of all steps of a recurrent layer, "LSTM" or "GRU"."""

    def __init__(self, kind: str, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cells = getattr(nn, kind)(inputs, hidden, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.cells(x)[0]
        return outputs


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


def conv1d(inputs: int, outputs: int, kernel: int, activation: nn.Module, *, stride: int = 1) -> nn.Sequential:
    """Return a convolution of lines that keeps the extent (over the stride), and an activation."""
    return nn.Sequential(nn.Conv1d(inputs, outputs, kernel, stride=stride, padding=kernel // 2), activation)
