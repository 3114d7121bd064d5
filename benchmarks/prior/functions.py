"""The functions: those of small models, as fusion makes them, at shapes for which no constant of a rule was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import tvm
from torch import Tensor, nn
from torch.nn import functional
from tvm.target import Target

from loopwright import Model, frontends
from loopwright.applying.lookup import digests, lower
from loopwright.codegen.functions import used_prim_funcs
from loopwright.codegen.program.digest import normal_form


class _Call(nn.Module):
    """A model without weights."""

    def __init__(self, call: Callable[..., Tensor]) -> None:
        super().__init__()
        self._call = call

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._call(*inputs)


def _conv(inputs: int, outputs: int, window: int, stride: int, groups: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups), nn.ReLU())


_Case = tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]
FAMILIES: dict[str, tuple[_Case, ...]] = {
    "linear": (
        (lambda: nn.Sequential(nn.Linear(384, 1152), nn.GELU()), ((96, 384),)),
        (lambda: nn.Linear(640, 200), ((50, 640),)),
    ),
    "linear, one row": (
        (lambda: nn.Linear(1536, 700), ((1, 1536),)),
        (lambda: nn.Sequential(nn.Linear(320, 2048), nn.ReLU()), ((1, 320),)),
    ),
    "product": (
        (lambda: _Call(torch.matmul), ((300, 180), (180, 260))),
        (lambda: _Call(torch.matmul), ((6, 90, 72), (6, 72, 112))),
    ),
    "attention": (
        (lambda: _Call(functional.scaled_dot_product_attention), ((1, 6, 96, 64),) * 3),
        (lambda: _Call(functional.scaled_dot_product_attention), ((2, 4, 144, 32),) * 3),
    ),
    "convolution": (
        (lambda: _conv(48, 96, 3, 2), ((1, 48, 40, 40),)),
        (lambda: _conv(72, 144, 1, 1), ((1, 72, 26, 26),)),
    ),
    "convolution by Winograd": ((lambda: _conv(96, 96, 3, 1), ((1, 96, 24, 24),)),),
    "depthwise convolution": (
        (lambda: _conv(112, 112, 3, 1, 112), ((1, 112, 30, 30),)),
        (lambda: _conv(80, 80, 5, 2, 80), ((1, 80, 44, 44),)),
    ),
    "pooling": (
        (lambda: nn.MaxPool2d(3, 2, 1), ((1, 48, 60, 60),)),
        (lambda: nn.AdaptiveAvgPool2d(1), ((1, 320, 9, 9),)),
    ),
    "softmax": (
        (lambda: nn.Softmax(-1), ((300, 500),)),
        (lambda: nn.LogSoftmax(-1), ((48, 2100),)),
    ),
    "normalisation": (
        (lambda: nn.LayerNorm(640), ((200, 640),)),
        (lambda: nn.RMSNorm(1536), ((40, 1536),)),
    ),
    "elementwise": (
        (lambda: _Call(lambda x, y: functional.silu(x) * y), ((72, 2300), (72, 2300))),
        (lambda: nn.GELU("tanh"), ((500, 300),)),
    ),
}


def functions(family: str, target: Target) -> Iterator[tuple[str, tvm.IRModule]]:
    """Yield a name and the workload of each function of a family's models, each once."""
    known: set[str] = set()
    for make, shapes in FAMILIES[family]:
        torch.manual_seed(0)
        model = Model(make().eval(), example_inputs=tuple(torch.rand(shape) for shape in shapes))
        mod = lower(frontends.to_program(model), target)
        for name, (digest, *_) in digests(mod).items():
            if digest not in known:
                known.add(digest)
                func = next(func for var, func in used_prim_funcs(mod) if str(var.name_hint) == name)
                yield f"{name} of {' and '.join('x'.join(map(str, shape)) for shape in shapes)}", normal_form(func)
