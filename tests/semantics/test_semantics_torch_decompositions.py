"""Operators of PyTorch that are translated as others, sorts with NaN, and numbers beside themselves."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.nn import functional

from loopwright import UnsupportedModel, frontends
from loopwright.model import Model
from tests.support.draws import torch_draws
from tests.support.models import Calls
from tests.support.torch_models import assert_agree

INF, NAN = float("inf"), float("nan")
DRAWN = torch_draws()
LEFT, RIGHT = (torch.randn(4, 6, generator=DRAWN) for _ in range(2))
SPECIAL = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.5]).repeat(4, 1)
OTHERS = torch.tensor([1.0, -2.0, 0.0, -0.0, NAN, -INF]).repeat(4, 1)
NUMBER, PLACE = torch.tensor(2.5), torch.tensor(0)


def test_operators_that_are_translated_as_others_agree() -> None:
    mask = torch.tensor([[True, False, True, False, False, True]] * 4)
    assert_agree(
        {
            "pairs": lambda x, y: (torch.fmax(x, y), torch.fmin(x, y), torch.hypot(x, y), torch.copysign(x, y)),
            "signs": lambda x, y: (torch.signbit(x), torch.angle(x), torch.copysign(x, -0.0), torch.ldexp(x, y)),
            "products": lambda x, y: (torch.addmv(x[:, 0], x, y[0], beta=2, alpha=3), torch.addmv(x[0, 0], x, y[0])),
            "batches": lambda x, y: torch.addbmm(x[:, :4], x.reshape(2, 4, 3), y.reshape(2, 3, 4), beta=0.5),
            "distances": lambda x, y: [torch.cdist(x, y, p) for p in (0.0, 1.0, 2.0, INF)] + [torch.dist(x, y)],
            "writes": lambda x, y: (
                x.diagonal_scatter(y[0, :4], -0),
                x.masked_scatter(mask, y),
                x.clone().put_(PLACE, NUMBER),
            ),
            "scatters": lambda x, y: x.scatter(1, torch.zeros(4, 1, dtype=torch.int64), 2.0, reduce="multiply"),
        },
        (LEFT, RIGHT),
        (SPECIAL, OTHERS),
    )


def test_the_complementary_error_function_keeps_its_digits_far_from_0() -> None:
    far = torch.linspace(-9, 9, 24).reshape(4, 6)
    assert_agree(
        {"erfc": lambda x: (torch.erfc(x), torch.erfc(x).log(), torch.erfc(x.half()))},
        (far,),
        (SPECIAL,),
    )
    with pytest.raises(UnsupportedModel, match="erfc"):
        frontends.to_program(Model(Calls(torch.erfc), example_inputs=(far.double(),)))


def test_bags_of_embeddings_agree() -> None:
    indices, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 0]), torch.tensor([0, 4, 4, 6])
    weight, bag = torch.randn(6, 3, generator=DRAWN), functional.embedding_bag
    assert_agree(
        {
            "modes": lambda i, o: [bag(i, weight, o, mode=mode) for mode in ("sum", "mean", "max")],
            "padding": lambda i, o: [bag(i, weight, o, mode=mode, padding_idx=4) for mode in ("mean", "max")],
            "last offset": lambda i, o: bag(i, weight, torch.cat([o, o.new_full((1,), 8)]), include_last_offset=True),
            "rows": lambda i, o: bag(
                i.reshape(2, 4), weight.half(), per_sample_weights=i.reshape(2, 4).half() / 4, mode="sum"
            ),
        },
        (indices, offsets),
    )


def test_places_in_sorted_rows_agree() -> None:
    row, rows = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0]), torch.arange(20.0).reshape(4, 5)
    assert_agree(
        {
            "row": lambda x: [torch.searchsorted(row, x, right=each) for each in (False, True)],
            "rows": lambda x: (torch.searchsorted(rows, x), torch.searchsorted(row, 0.5, side="right")),
            "buckets": lambda x: (torch.bucketize(x, row, right=True), torch.bucketize(x, row, out_int32=True)),
        },
        (LEFT,),
        (SPECIAL,),
    )


def test_tensors_without_axes_are_rows_of_one_element() -> None:
    assert_agree(
        {
            "reads": lambda x, i: (x.gather(0, i), x.index_select(0, i), x.softmax(0), x.log_softmax(0), x.argmax(0)),
            "sorts": lambda x, i: (x.sort(), x.topk(1), x.median(0), x.kthvalue(1)),
            "writes": lambda x, i: (x.scatter_add(0, i, x), x.scatter_reduce(0, i, x, "amax"), x.scatter(0, i, 3.0)),
        },
        (NUMBER, PLACE),
    )


def test_sorts_take_nan_for_the_greatest_number() -> None:
    mixed = torch.tensor([[2.0, NAN, -1.0, 0.0, -0.0, INF], [1, 1, NAN, NAN, -INF, 0], [3, 2, 1, 3, 2, 1]])
    assert_agree(
        {
            "sorts": lambda x: (x.sort(stable=True), x.argsort(dim=0, descending=True, stable=True), x.half().msort()),
            "largest": lambda x: (x.topk(3).values, x.topk(2, 0, largest=False).values, x.double().topk(3).values),
            "middle": lambda x: (x.median(), x.median(1).values, x.nanmedian(), x.nanmedian(1, keepdim=True).values),
            "halves": lambda x: (
                x.half().atan(),
                x.half().cosh(),
                torch.atan2(x.half(), x.bfloat16()),
                x.bfloat16().asin(),
            ),
            "others": lambda x: (x.kthvalue(2, 1).values, x.long().nan_to_num().median(), (x > 0).sort(stable=True)),
        },
        (mixed,),
    )


def test_numbers_beside_themselves_keep_nan_and_infinities() -> None:
    assert_agree(
        {
            "comparisons": lambda x: (x == x, x != x, x >= x, torch.isfinite(x), torch.where(x == x, x, 7.0)),
            "arithmetic": lambda x: (x - x, x - x.detach(), x / x, x * 0.0, torch.isnan(x), torch.isinf(x)),
        },
        (SPECIAL,),
    )


def test_statistics_of_norms_and_of_nothing_agree() -> None:
    image, one = torch.randn(2, 4, 3, generator=DRAWN), torch.ones(4)

    def norms(x: torch.Tensor) -> object:
        aten = torch.ops.aten
        layer, group = (
            aten.native_layer_norm(x, [3], None, None, 1e-5),
            aten.native_group_norm(x, one, None, 2, 4, 3, 2, 1e-5),
        )
        batch = aten._native_batch_norm_legit_functional(x, one, one, one, one, True, 0.3, 1e-5)
        return layer, group, batch, torch.var_mean(x[..., :0], 0), torch.std_mean(x[..., :0], 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of variances of nothing
        assert_agree({"all": norms}, (image,))


@pytest.mark.whole
def test_adaptive_maxima_of_unequal_parts_agree() -> None:
    def pools(x: torch.Tensor) -> object:
        return (
            functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
            functional.adaptive_max_pool2d(x, (2, 3), return_indices=True),
            functional.adaptive_max_pool1d(x[0], 4),
        )

    assert_agree(
        {"all": pools}, (torch.randn(1, 2, 4, 6, generator=DRAWN),), (SPECIAL.reshape(1, 1, 4, 6).repeat(1, 2, 1, 1),)
    )


@pytest.mark.whole
def test_booleans_take_part_where_pytorch_lets_them() -> None:
    places = torch.tensor([[0, 1, 1, 0, 2, 2]] * 4)
    assert_agree(
        {
            "pairs": lambda a, b: (
                a == b,
                a != b,
                a < b,
                torch.maximum(a, b),
                torch.min(a, b),
                torch.add(a, b, alpha=0),
            ),
            "tests": lambda a, b: (a.isnan(), a.isinf(), a.sign(), a.log2(), torch.isclose(a, b), a.clamp(min=b)),
            "writes": lambda a, b: (a.scatter_reduce(1, places, b, "sum"), a.scatter_reduce(1, places, b, "prod")),
            "sums": lambda a, b: (a.index_add(0, places[0, :4], b), a.index_put((places[0, :4],), b, accumulate=True)),
            "others": lambda a, b: (functional.pad(a, (1, 2), value=2.0), a.sort(dim=1, descending=True, stable=True)),
        },
        (LEFT > 0, RIGHT > 0.5),
    )
