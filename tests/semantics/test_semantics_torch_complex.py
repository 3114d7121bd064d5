"""Complex numbers within models of PyTorch, and Fourier transforms."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from loopwright import UnsupportedModel, frontends
from loopwright.model import Model
from tests.support.draws import torch_draws
from tests.support.models import Calls
from tests.support.torch_models import assert_agree, assert_same, compiled

DRAWN = torch_draws()
LEFT, RIGHT = (torch.randn(4, 6, generator=DRAWN) for _ in range(2))
fft = torch.fft


def real(values: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(values.resolve_conj())


def test_fourier_transforms_agree() -> None:
    assert_agree(
        {
            "forward": lambda x, y: (real(fft.fft(x)), fft.fft(x, dim=0).real, real(fft.fftn(torch.complex(x, y)))),
            "backward": lambda x, y: (fft.ifft(x).imag, real(fft.ifft2(torch.complex(x, y), norm="ortho"))),
            "halves": lambda x, y: (real(fft.rfft2(x, norm="forward")), real(fft.ihfft(y)), fft.hfft(x, n=7)),
            "to real": lambda x, y: [fft.irfft(torch.complex(x, y), n=n) for n in (8, 9)] + [fft.irfft2(fft.rfft2(x))],
            "sizes": lambda x, y: (fft.fft(x, n=9).abs(), fft.fft(y, n=4).angle(), real(fft.fft(x.double()))),
            "frames": lambda x, y: torch.stft(x, 4, 2, window=y[0, :4], return_complex=True).abs(),
        },
        (LEFT, RIGHT),
        atol=1e-5,  # of numbers of up to 10, which cancel out
    )
    with pytest.raises(UnsupportedModel, match="5000 points"):
        frontends.to_program(Model(Calls(lambda x: fft.rfft(x).abs()), example_inputs=(torch.randn(5000),)))


def test_arithmetic_of_complex_numbers_agrees() -> None:
    rows = torch.tensor([2, 0])
    assert_agree(
        {
            "products": lambda x, y: real(torch.complex(x, y) * torch.complex(y, x) * x * 2j),
            "quotients": lambda x, y: real(torch.complex(x, y) / torch.complex(y, x) + 1 / torch.complex(x, y)),
            "sums": lambda x, y: real(torch.complex(x, y) - x + 3 - torch.complex(y, x) * torch.arange(6)),
            "matrices": lambda x, y: real(torch.complex(x, y) @ torch.complex(y, x).mH),
            "functions": lambda x, y: (
                torch.exp(1j * x).imag,
                torch.polar(x.abs(), y).real,
                torch.complex(x, y).angle(),
            ),
            "places": lambda x, y: real(torch.cat([torch.complex(x, y)[rows, ::2], torch.complex(y, x)[:1, :3]])),
            "choices": lambda x, y: real(torch.where(x > y, torch.complex(x, y), torch.complex(y, y)).sum(0)),
            "conjugates": lambda x, y: (torch.complex(x, y).conj().imag, real(torch.complex(x, y).conj().T)),
        },
        (LEFT, RIGHT),
        rtol=1e-4,  # quotients of small numbers
        atol=1e-5,
    )


def test_complex_weights_agree() -> None:
    class Rotations(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("turns", torch.polar(torch.ones(4, 3), torch.arange(12.0).reshape(4, 3)).conj())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return real(torch.view_as_complex(x.reshape(4, 3, 2)) * self.turns).reshape(x.shape)

    model = Rotations()
    assert_same(compiled(model, (LEFT,))(RIGHT)[0], model(RIGHT))


def test_complex_ends_and_mixed_operands_are_refused() -> None:
    for function, inputs, match in (
        (torch.fft.fft, (LEFT,), "returns complex numbers"),
        (torch.abs, (torch.complex(LEFT, RIGHT),), "takes complex numbers"),
        (lambda x: torch.where(x > 0, torch.complex(x, x), x.abs()).real, (LEFT,), "where"),
    ):
        with pytest.raises(UnsupportedModel, match=match):
            frontends.to_program(Model(Calls(function), example_inputs=inputs))
