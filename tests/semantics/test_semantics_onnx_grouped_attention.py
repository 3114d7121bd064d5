"""GroupQueryAttention, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import UnsupportedModel, frontends
from tests.support.draws import numpy_draws
from tests.support.onnx_cells import Array, Cell, by_onnx_runtime, model_of
from tests.support.onnx_nodes import run

DRAWN = numpy_draws()


def drawn(*shape: int) -> Array:
    return DRAWN.standard_normal(shape).astype("float32")


def attention(
    length: int,
    seen: list[int],
    *,
    past: int = 0,
    total: int | None = None,
    heads: tuple[int, int] = (4, 2),
    size: int = 16,
    packed: bool = False,
    rotary: int = 0,
    bias: bool = False,
    **attributes: Any,
) -> Cell:
    """A node whose new rows make ``seen`` rows of each batch, in a cache of ``past`` rows."""
    batch, (queries, groups) = len(seen), heads
    total = max(*seen, past) if total is None else total
    widths = [queries * size, groups * size, groups * size]
    parts = [drawn(batch, length, width) for width in widths]
    rows = [np.concatenate(parts, 2), None, None] if packed else parts
    caches = [drawn(batch, groups, past, size) if past else None for _ in range(2)]
    lengths = np.array(seen, "int32") - 1
    tables: list[Any] = [None, None]
    if rotary:
        angles = drawn(64, rotary // 2)
        tables = [np.cos(angles), np.sin(angles)]
    added = (None, drawn(batch, 1, length, total)) if bias else ()
    given: Any = (*rows, *caches, lengths)
    return Cell(
        "GroupQueryAttention",
        given,
        {"num_heads": queries, "kv_num_heads": groups, "do_rotary": int(rotary > 0), **attributes},
        outputs=3,
        weights=(np.array(total, "int32"), *tables, *added),
        domain="com.microsoft",
    )


CELLS = {
    "prompt": attention(7, [7, 7]),
    "prompt in a cache": attention(5, [5, 5], past=12, total=5, rotary=16),
    "prompts of several lengths": attention(6, [6, 4], rotary=16, packed=True),
    "one token": attention(1, [9, 4], past=12, rotary=16),
    "one token behind a cache": attention(1, [10, 10], past=9, total=10, size=32, rotary=16, packed=True),
    "several tokens": attention(3, [11], past=16, total=11, rotary=16, rotary_interleaved=1),
    "window": attention(1, [13, 5], past=16, local_window_size=4),
    "window of a prompt": attention(9, [9, 9], local_window_size=3),
    "scale and soft limit": attention(4, [4], scale=0.3, softcap=2.0, heads=(6, 2), size=8),
    "bias": attention(4, [4, 4], bias=True, heads=(3, 3)),
    "bias behind a soft limit": attention(1, [6, 3], past=6, bias=True, softcap=1.5),
}

FEW = frozenset(("prompts of several lengths", "one token", "window"))


@pytest.mark.parametrize("names", [FEW, pytest.param(CELLS.keys() - FEW, marks=pytest.mark.whole)], ids=["few", "all"])
def test_it_is_what_onnx_runtime_computes(names: frozenset[str]) -> None:
    cells = {name: CELLS[name] for name in sorted(names)}
    model, values = model_of(21, [*cells.values()])
    results = iter(run(model, *values.values()))
    for name, cell in cells.items():
        length, lengths = cell.inputs[0].shape[1], cell.inputs[5] + 1
        for place, wanted in enumerate(by_onnx_runtime(cell)):
            result = next(results)
            assert result.shape == wanted.shape, name
            for batch, rows in enumerate(lengths):
                # What a prompt has behind its own rows is padding: ONNX Runtime leaves it open.
                kept = slice(min(length, rows)) if place == 0 else slice(None)
                np.testing.assert_allclose(result[batch][kept], wanted[batch][kept], 1e-4, 1e-5, err_msg=name)


def test_half_is_computed_in_float32() -> None:
    cell = attention(1, [9, 4], past=12, rotary=16)
    halves: list[Any] = [
        each if each is None or each.dtype != "float32" else each.astype("float16") for each in cell.inputs
    ]
    tables = [each.astype("float16") if each.ndim else each for each in cell.weights]
    half = Cell(cell.operator, tuple(halves), cell.attributes, None, 3, tuple(tables), domain=cell.domain)
    model, values = model_of(half.opset, [half])
    for result, wanted in zip(run(model, *values.values()), by_onnx_runtime(half), strict=True):
        assert result.dtype == wanted.dtype == "float16"
        np.testing.assert_allclose(result, wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("attributes", "reason"), [({"smooth_softmax": 1}, "smooth_softmax"), ({"qk_output": 1}, "qk_output")]
)
def test_what_is_refused_is_named(attributes: dict[str, Any], reason: str) -> None:
    cell = attention(2, [2], **attributes)
    with pytest.raises(UnsupportedModel, match=f"GroupQueryAttention.*{reason}"):
        frontends.to_program(model_of(cell.opset, [cell])[0])
