"""Reads and writes at indices, and images in other sizes, of PyTorch, compared with PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from loopwright import frontends
from loopwright.errors import UnsupportedModel
from loopwright.model import Model
from tests.support.draws import torch_draws
from tests.support.models import Calls
from tests.support.torch_models import assert_agree

DRAWN = torch_draws()
ROWS = torch.randn(4, 9, generator=DRAWN)
PLACES = torch.randint(0, 4, (4, 9), generator=DRAWN)
IMAGE = torch.randn(2, 4, 6, 6, generator=DRAWN)
CUBE = torch.randn(5, 6, 5, generator=DRAWN)
NAN = float("nan")


def test_axes_of_indices_come_where_pytorch_puts_them() -> None:
    assert_agree(
        {
            "pairs": lambda x, i, j: (x[i, :, j], x[:, i, j], x[i[:, None], j], x[:, i[:, None], j - 3]),
            "others": lambda x, i, j: (x[i], x[:, :, i], x[i, j, i], x[-1], x[:, -2], x.unfold(1, 3, 2)),
        },
        (CUBE, torch.tensor([0, 1, -1]), torch.tensor([1, 3, 4])),
    )


def test_strides_count_elements_of_the_memory() -> None:
    assert_agree(
        {
            "rows": lambda x: (x.as_strided((3, 4), (2, 3), 1), x.as_strided((2, 3, 4), (9, 3, 2))),
            "columns": lambda x: (x.T.as_strided((9, 4), (4, 1)), x.T.as_strided((9, 4), (1, 9))),
        },
        (ROWS,),
    )
    with pytest.raises(UnsupportedModel, match="part of its memory"):
        frontends.to_program(Model(Calls(lambda x: x[1:].as_strided((2, 2), (1, 2))), example_inputs=(ROWS,)))


def test_ranges_count_down() -> None:
    def ranges(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.arange(5, -3, step) * x.sum() for step in (-1, -2)] + [torch.arange(1.0, -1.0, -0.3)]

    assert_agree({"all": ranges}, (ROWS,))


def test_scatters_reduce_as_pytorch_does() -> None:
    kinds = ("sum", "prod", "amax", "amin", "mean")
    assert_agree(
        {
            "add": lambda x, i: (torch.zeros(4, 9).scatter_add(0, i, x), torch.ones(4, 9).scatter_add(1, i[:, :3], x)),
            "index": lambda x, i: (torch.zeros(4, 9).index_add(0, i[:, 0], x), x.index_add(1, i[0], x, alpha=2)),
            "copies": lambda x, i: (torch.zeros(4, 9).scatter(1, i[:, :1], x), x.scatter(1, i[:, :1], 2.5)),
            "reduced": lambda x, i: [x.scatter_reduce(0, i, x * 2, kind) for kind in kinds],
            "without": lambda x, i: [x.scatter_reduce(0, i, x * 2, kind, include_self=False) for kind in kinds],
            "halves": lambda x, i: torch.zeros(9, dtype=torch.half).index_add(0, i[0], torch.ones(9).half()),
        },
        (ROWS, PLACES),
        (torch.where(ROWS > 1, NAN, ROWS), PLACES),
    )


def assigned(x: torch.Tensor, i: torch.Tensor) -> list[torch.Tensor]:
    results = [x.clone() for _ in range(9)]
    results[0][x > 0] = 5.0
    results[1][i[0, :2], :] = 1.0
    results[2][-1], results[2][:, -2] = 0.0, x[:, 0]
    results[3][i[:, 0], i[:, 1] - 4] = 7.0
    results[4][x[:, 0] > 0] = 3.0
    results[5][1:3, 2:5] += x[:2, :3]
    results[6][:, i[0, :2]] = 2.0
    results[7][:, i[0, :1] - 3] = x[:, :1] * 2
    results[8][i[:1, 0]] = x[1]
    return [*results, x.index_put((i[:, 0],), x, accumulate=True)]


def test_assignments_agree() -> None:
    assert_agree({"all": assigned}, (ROWS, PLACES))


def test_an_assignment_of_as_many_values_as_a_mask_has_is_refused() -> None:
    model = Calls(lambda x: x.clone().index_put((x > 0,), x.flatten()[:4]))
    with pytest.raises(UnsupportedModel, match=r"index_put.*torch\.where"):
        frontends.to_program(Model(model, example_inputs=(torch.tensor([1.0, 2, 3, 4, -1]),)))


@pytest.mark.whole
def test_resized_images_agree() -> None:
    resize = functional.interpolate

    assert_agree(
        {
            "nearest": lambda x: (
                resize(x, scale_factor=1.7),
                resize(x, (4, 4)),
                resize(x, (12, 24)),
                resize(x, (11, 7)),
            ),
            "exact": lambda x: (resize(x, (4, 4), mode="nearest-exact"), resize(x, scale_factor=(0.5, 1.3))),
            "linear": lambda x: (resize(x, (9, 4), mode="bilinear"), resize(x, scale_factor=1.7, mode="bilinear")),
            "corners": lambda x: [resize(x, size, mode="bilinear", align_corners=True) for size in ((9, 4), (1, 1))],
            "antialias": lambda x: [
                resize(x, size, mode=mode, antialias=True)
                for mode in ("bilinear", "bicubic")
                for size in ((4, 4), (9, 5))
            ],
            "others": lambda x: (resize(x, (9, 9), mode="bicubic"), resize(x, (4, 4), mode="area")),
            "lines": lambda x: (resize(x[0], scale_factor=2.0, mode="linear"), resize(x[0], scale_factor=2.0)),
        },
        (IMAGE,),
        atol=1e-5,
    )


@pytest.mark.whole
def test_samples_at_a_grid_agree() -> None:
    grid = torch.rand(2, 4, 5, 2, generator=DRAWN) * 2.4 - 1.2
    assert_agree(
        {
            mode: lambda x, g, mode=mode: [
                functional.grid_sample(x, g, mode, padding, align_corners=corners)
                for padding, corners in (("zeros", False), ("border", True), ("reflection", False))
            ]
            for mode in ("bilinear", "nearest", "bicubic")
        },
        (IMAGE, grid),
        rtol=1e-4,
        atol=1e-5,
    )


def test_windows_agree() -> None:
    assert_agree(
        {
            "unfold": lambda x: (functional.unfold(x, 3), functional.unfold(x, 2, dilation=2, padding=1, stride=2)),
            "fold": lambda x: functional.fold(functional.unfold(x, 3), (6, 6), 3),
            "average": lambda x: (
                functional.avg_pool2d(x, 3, divisor_override=2),
                functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
                functional.avg_pool2d(x, (90, 2), (90, 3), (3, 1), ceil_mode=True),
                functional.avg_pool2d(x, 90, 90, 2, ceil_mode=True, count_include_pad=False),
                functional.max_pool2d(x, (90, 3), (90, 2), 1, ceil_mode=True),
            ),
        },
        (IMAGE,),
        atol=1e-5,
    )


def test_sums_over_windows_are_divided_by_any_number() -> None:
    volume = torch.randn(1, 2, 7, 5, 7)
    assert_agree(
        {
            "volume": lambda x: (
                functional.avg_pool3d(x, (6, 3, 4), (2, 3, 2), (3, 1, 0), divisor_override=2),
                functional.avg_pool3d(x, 2, divisor_override=-3),
            ),
        },
        (volume,),
        atol=1e-5,
    )
    # As PyTorch does, towards zero.
    whole = torch.arange(-40, 41).reshape(1, 1, 9, 9)
    assert_agree({"integers": lambda x: functional.avg_pool2d(x, 2, divisor_override=7)}, (whole,))


def test_tensors_without_elements_agree() -> None:
    assert_agree(
        {
            "products": lambda x, w: (torch.relu(x[:, :0] @ w[:0] + 1), torch.addmm(w[0, :5], x[:, :0], w[:0, :5])),
            "reductions": lambda x, w: (x[:0].sum(0), x[:0].mean(), x[:, :0].sum(1), x[:0].prod(0), x[:0].any()),
            "results": lambda x, w: (torch.cat([x[:0], x]), torch.cat([x[:0] + 1, w]), x[:, :0]),
        },
        (torch.randn(4, 6), torch.randn(6, 6)),
    )
    assert_agree({"alone": lambda x: x[:, :0]}, (torch.randn(4, 6),))
