"""Dtypes and values of arithmetic, comparisons, bits and division of PyTorch, compared with PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from tvm import relax

from loopwright import frontends
from loopwright.errors import UnsupportedModel
from loopwright.frontends.torch import importer
from loopwright.frontends.torch.node import Converter
from loopwright.model import Model
from tests.support.cases import first
from tests.support.models import Calls
from tests.support.torch_models import assert_agree, compiled

INF, NAN = float("inf"), float("nan")
LONG = torch.tensor([[1, -2, 0, 7], [-7, 5, 2, -1], [3, 4, -6, 9]])
FLOAT = torch.tensor([[3.0, -2.5, 0.0, 7.5], [-7.0, 1.0, 2.0, -0.5], [1e-3, 4, 9, 1.5]])
SPECIAL = torch.tensor([[INF, -INF, NAN, -0.0], [1e-45, 3e38, NAN, 1.0], [0.0, INF, -INF, NAN]])


def test_numbers_take_part_in_promotion() -> None:
    assert_agree(
        {
            "int by float": lambda i, b, f: (i * 0.5, i + 0.5, 0.5 - i, i - 0.5, (1.0 - (i > 4).long()) * -1e4),
            "int to float": lambda i, b, f: (i < 1.5, i >= -0.5, i == 0.5, i != 1, i > 2, i <= 1.5),
            "bool": lambda i, b, f: (b * 2.5, b + 1, b * 3, b + b, b * b, b == 1, ~b, b & b, b | True, b ^ b),
            "float": lambda i, b, f: (f * 2, torch.rsub(f, 3, alpha=2), torch.sub(f, 1, alpha=3), f > True),
            "int by int": lambda i, b, f: (i.to(torch.uint8) + 300, ~i, i | 3, i & 6, i ^ 5),
            "where": lambda i, b, f: (torch.where(b, f, 0), torch.where(b, i, 1.5), torch.where(b, 1, 2)),
        },
        (LONG, LONG > 0, FLOAT),
        (LONG, LONG > 0, SPECIAL),
    )


def test_tensors_take_part_in_promotion() -> None:
    assert_agree(
        {
            "int8 and int64": lambda i, f: [
                (a * i, a + i, a - i, a < i, torch.add(a, i, alpha=2), a & i) for a in [i.to(torch.int8)]
            ],
            "int and float": lambda i, f: (i * f, f - i, i >= f, i / f, f.double() + f),
            "without axes": lambda i, f: (
                f * torch.tensor(1.5, dtype=torch.float64),
                f + torch.tensor(2),
                i * torch.tensor(1.5),
                i - torch.tensor(2.0, dtype=torch.float64),
            ),
        },
        (LONG, FLOAT),
    )


@pytest.mark.parametrize("dtype", first(1, [torch.float16, torch.bfloat16]))
def test_numbers_are_rounded_to_halves_where_pytorch_rounds_them(dtype: torch.dtype) -> None:
    values = FLOAT.to(dtype)
    assert_agree(
        {
            "numbers": lambda x: (x * 1.7, x + 0.1, x / 3, 1.7 - x, x < 1.7, x % 1.7, x // 0.3),
            "without axes": lambda x: (x * torch.tensor(1.7), x + torch.tensor(0.1)),
        },
        (values,),
        (values * 0.37,),
        rtol=0,
        atol=0,
    )


def test_powers_agree() -> None:
    assert_agree(
        {
            "float": lambda f, i: (f**2, f**0.5, f**3, f**-1, f**-2, f**-0.5, f**1.7, 2**f, f**f),
            "int": lambda f, i: (i**2, i**0.5, 2**i, i**3.0, i**11, i**0),
        },
        (FLOAT, LONG),
        (SPECIAL, LONG),
    )


def test_shifts_by_more_than_all_bits_agree() -> None:
    assert_agree(
        {
            "int64": lambda i, by: (i << 1, i >> 1, i << by, i >> by, 1 << by),
            "uint8": lambda i, by: (i.to(torch.uint8) << 3, i.to(torch.uint8) >> 2),
        },
        (LONG, LONG.abs()),
        (LONG, LONG * 20),
    )


def test_floor_and_remainder_of_floats_are_exact() -> None:
    def all_of(a: torch.Tensor, b: torch.Tensor) -> object:
        modes = [torch.div(a, b, rounding_mode=mode) for mode in ("floor", "trunc")]
        return a // b, a % b, torch.fmod(a, b), *modes, a / b, torch.reciprocal(a), a // 0.3, a % -0.3

    assert_agree(
        {"all": all_of},
        (torch.tensor([1.0, 0.5, 6, 7, -7, 5.5]), torch.tensor([0.1, 0.1, 0.2, 2, 2, -2])),
        (torch.tensor([INF, -INF, 1, -1, 5, NAN]), torch.tensor([1.0, 1, INF, INF, -INF, 0])),
        (torch.tensor([1.0, -1, 0, 2, 0, 1]), torch.tensor([0.0, 0, 0, -0.0, INF, NAN])),
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_truncated_quotients_of_half_precision_are_rounded_before(dtype: torch.dtype) -> None:
    a, b = (torch.arange(1, most + 1, dtype=torch.float32) * 0.37 for most in (191, 59))
    pairs = torch.cartesian_prod(a, b).to(dtype)
    given = (pairs[:, 0].clone(), pairs[:, 1].clone())
    expected = torch.div(*given, rounding_mode="trunc")
    assert (expected != torch.trunc(given[0].float() / given[1].float())).any()
    [found] = compiled(Calls(lambda a, b: torch.div(a, b, rounding_mode="trunc")), given)(*given)
    assert torch.equal(found, expected)
    special = torch.tensor([INF, -INF, NAN, -0.0, 0.0, 1.0]).to(dtype)
    by = torch.tensor([2.0, -3.0, 1.0, 4.0, 0.0, 0.0]).to(dtype)
    assert_agree({"trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc")}, (special, by))


def test_integers_are_divided_as_pytorch_divides_them() -> None:
    def all_of(a: torch.Tensor, b: torch.Tensor) -> object:
        modes = [torch.div(a, b, rounding_mode=mode) for mode in ("floor", "trunc")]
        numbers = (2 / b, torch.reciprocal(b), a // 2.0, 5 % b, 5 // b, a // 3, a % -3, torch.fmod(a, 3))
        return a // b, a % b, torch.fmod(a, b), *modes, a / b, *numbers

    least = torch.tensor([[-(2**63), 2**62, -5, 7]]).repeat(3, 1)
    assert_agree({"all": all_of}, (LONG, LONG + 10), (least, torch.tensor([[3, -1, 3, -3]]).repeat(3, 1)))


def test_integers_divided_by_zero_are_zero_and_do_not_end_the_process() -> None:
    by = torch.tensor([2, 0, -1, 3])
    run = compiled(Calls(lambda a, b: (a // b, a % b, torch.fmod(a, b))), (by, by.clamp(min=1)))
    least = -(2**63)
    floor, remainder, rest = run(torch.tensor([7, 7, least, -7]), by)
    assert floor.tolist() == [3, 0, least, -3]
    assert remainder.tolist() == [1, 0, 0, 2]
    assert rest.tolist() == [1, 0, 0, -1]


class Branches(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.cond(i.sum() > 0, lambda x, i: x[-1] + i * 0.5, lambda x, i: x[0] - i / 2, (x, i))


def test_branches_promote_and_index_as_the_rest_does() -> None:
    run = compiled(Branches(), (FLOAT, LONG))
    for sign in (1, -1):
        torch.testing.assert_close(run(FLOAT, sign * LONG)[0], Branches()(FLOAT, sign * LONG))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: torch.pow(x, x.abs()), "pow.Tensor_Tensor"),
        (lambda x: x.view(torch.float64), "view.dtype"),
        (lambda x: torch.special.erfinv(x.float()), "erfinv"),
    ],
    ids=["power of integers", "bits", "function"],
)
def test_what_has_no_right_translation_is_refused_by_its_name(function: object, said: str) -> None:
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(Model(Calls(function), example_inputs=(LONG,)))


@pytest.mark.parametrize(
    ("converter", "said"),
    [
        (lambda node: node.cast(node["self"], "float64"), r"aten\.sin.*float64.*float32"),
        (lambda node: relax.op.expand_dims(node["self"], 0), r"aten\.sin.*shape"),
        (lambda node: relax.op.permute_dims(node["self"], [1, 0]), r"aten\.sin.*shape"),
    ],
    ids=["dtype", "rank", "extents"],
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_translations_of_another_dtype_or_shape_are_refused(
    converter: Converter, said: str, symbolic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(importer.CONVERTERS, "sin.default", converter)
    extents = {"x": {0: torch.export.Dim("rows"), 1: torch.export.Dim("columns")}} if symbolic else None
    model = Sine().eval()
    program = torch.export.export(model, (FLOAT,), dynamic_shapes=extents)
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(Model(program))


class Sine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1
