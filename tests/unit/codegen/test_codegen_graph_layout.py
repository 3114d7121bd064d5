"""Convolution networks over channels last, and transposed convolutions by phases."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional

from examples.onnx_model import small_network
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.lowering import lower
from loopwright.frontends import to_program
from tests.support.models import Calls, called, check, lowered
from tests.support.rule_programs import TARGET


def normalised(*layers: nn.Module) -> nn.Sequential:
    """Return layers in sequence, with normalisations of random statistics."""
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value in (module.running_mean, module.weight, module.bias):
                nn.init.uniform_(value, -1, 1)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return model.eval()


def test_a_single_convolution_takes_in_the_transposes_around_it() -> None:
    model = normalised(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
    mod = check(model, torch.randn(2, 4, 7, 9))
    [name] = called(mod)
    assert name == "fused_conv2d_add_relu_transpose"
    text = mod.script()
    assert '"conv2d_nhwc"' in text
    assert "R.permute_dims" not in text


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(nn.AvgPool2d(2), marks=pytest.mark.whole),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(6, 6, 3, groups=3),
        pytest.param(nn.ConvTranspose2d(6, 6, 4, 2, 1), marks=pytest.mark.whole),
        nn.ConvTranspose2d(6, 6, 3, 2, 1, output_padding=1, groups=2),
        pytest.param(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.ReLU()), marks=pytest.mark.whole),
        pytest.param(Calls(lambda x: torch.cat([x, functional.relu(x)], 1)[:, 3:9]), marks=pytest.mark.whole),
        Calls(lambda x: functional.pad(x, (1, 0, 2, 1))),
    ],
    ids=lambda module: type(module).__name__,
)
def test_what_is_between_convolutions_follows_their_layout(between: nn.Module) -> None:
    model = normalised(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), between, nn.Conv2d(6, 5, 1), nn.ReLU())
    check(model, torch.randn(1, 3, 10, 8))


def test_the_interior_of_a_network_is_not_transposed() -> None:
    model = normalised(
        nn.Conv2d(3, 8, 3, 2, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.Hardswish(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 6, 1),
        Calls(lambda x: x.mean((2, 3))),
        nn.Linear(6, 4),
    )
    names = called(check(model, torch.randn(2, 3, 22, 22)))
    assert not any("transpose" in name for name in names)
    assert len(names) == 6


def test_the_layout_can_be_kept() -> None:
    model, x = normalised(nn.Conv2d(4, 6, 3), nn.ReLU()), torch.randn(1, 4, 7, 7)
    with tvm.transform.PassContext(disabled_pass=["ChannelsLast"]):
        mod = lowered(model, x)
    assert '"conv2d_nchw"' in mod.script()


@pytest.mark.parametrize(("groups", "columns", "keeps"), [(1, 9, False), (2, 9, True), (6, 9, False), (6, 14, True)])
def test_a_single_convolution_keeps_its_layout_if_it_has_groups_of_channels_or_long_lines(
    groups: int, columns: int, keeps: bool
) -> None:
    model, x = normalised(nn.Conv2d(6, 12, 3, groups=groups), nn.ReLU()), torch.randn(1, 6, 7, columns)
    assert ("transpose" not in " ".join(called(check(model, x)))) == keeps


def test_a_convolution_of_an_onnx_model_which_names_no_dtype_of_its_result() -> None:
    mod = lower(to_program(small_network()).module, TARGET)
    assert any("conv2d" in str(var.name_hint) for var, _ in prim_funcs(mod))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"kernel_size": 4, "stride": 2, "padding": 1}, marks=pytest.mark.whole),
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": 3, "stride": (2, 1), "padding": (0, 2)},
        pytest.param({"kernel_size": 2, "stride": 3}, marks=pytest.mark.whole),
    ],
    ids=str,
)
def test_a_transposed_convolution_is_one_reduction_over_its_input(options: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 4)
    x[0, 1, 2, 3], x[1, 2, 0, 1] = torch.inf, torch.nan  # read by some outputs and not by their neighbours
    mod = check(nn.Sequential(nn.ConvTranspose2d(3, 5, **options), nn.ReLU()), x)
    assert called(mod) == ["fused_conv2d_transpose_add_relu"]
    assert "dilat" not in mod.script()


def test_a_transposed_convolution_of_lines_is_one_reduction_over_its_input() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7)
    x[0, 1, 3], x[1, 2, 0] = torch.inf, torch.nan
    mod = check(nn.Sequential(nn.ConvTranspose1d(3, 5, 5, stride=3, padding=2, output_padding=1), nn.ReLU()), x)
    assert called(mod) == ["fused_conv1d_transpose_add_relu"]


@pytest.mark.parametrize(
    ("shape", "outputs", "options"),
    [
        ((2, 6, 5, 4), 9, {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "groups": 3}),
        ((2, 5, 4, 6), 5, {"kernel_size": (3, 4), "stride": (2, 3), "padding": 1, "groups": 5}),
        ((1, 6, 4, 6), 4, {"kernel_size": 3, "stride": (1, 2), "dilation": (2, 1), "padding": (3, 0), "groups": 2}),
        ((2, 3, 3, 2, 4), 4, {"kernel_size": 3, "stride": (2, 1, 2), "dilation": (1, 2, 1)}),
    ],
    ids=["groups", "depthwise", "dilated", "volumes"],
)
def test_each_transposed_convolution_with_phases_is_one_reduction_over_its_input(
    shape: tuple[int, ...], outputs: int, options: Any
) -> None:
    torch.manual_seed(0)
    x, rank = torch.randn(shape), len(shape) - 2
    x[0, 1][(1,) * rank], x[-1, 2][(0,) * rank] = torch.inf, torch.nan
    transposed = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[rank](shape[1], outputs, **options)
    mod = check(nn.Sequential(transposed, nn.ReLU()), x)
    assert called(mod) == [f"fused_conv{rank}d_transpose_add_relu"]
    assert not any(name in mod.script() for name in ("dilat", "spread"))


def test_a_grouped_transposed_convolution_of_inputs_rearranges_its_kernel() -> None:
    for groups, kernel in ((2, (6, 3, 3, 4)), (6, (6, 1, 4, 3))):
        model = Calls(functools.partial(functional.conv_transpose2d, stride=2, padding=1, groups=groups))
        assert '"rearrange_kernel"' in check(model, torch.randn(1, 6, 5, 4), torch.randn(kernel)).script()


@pytest.mark.parametrize("groups", [1, 2])
def test_a_dilated_transposed_convolution_keeps_infinities_apart(groups: int) -> None:
    torch.manual_seed(0)
    line, image = torch.randn(1, 4, 7), torch.randn(2, 4, 5, 4)
    line[0, 1, 3], image[0, 1, 2, 3], image[1, 2, 0, 1] = torch.inf, torch.inf, torch.nan
    check(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=5, output_padding=1, dilation=2, groups=groups), line)
    check(nn.ConvTranspose2d(4, 6, 3, stride=(2, 1), padding=(1, 0), dilation=(3, 2), groups=groups), image)


def test_a_transposed_convolution_of_inputs_rearranges_its_kernel() -> None:
    model = Calls(lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1))
    mod = check(model, torch.randn(1, 3, 5, 4), torch.randn(3, 6, 4, 4))
    assert called(mod) == ["conv2d_transpose"]
    assert '"rearrange_kernel"' in mod.script()
    lines = Calls(lambda x, w: functional.conv_transpose1d(x, w, stride=2))
    assert '"rearrange_kernel"' in check(lines, torch.randn(1, 3, 5), torch.randn(3, 6, 3)).script()
