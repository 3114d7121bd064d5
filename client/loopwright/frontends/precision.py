"""How far the outputs of two implementations of a model may differ, by the precision that it computes in."""

from __future__ import annotations

from collections.abc import Iterable

QUANTISED = "quantised"
"""Stands among dtypes for activations that are rounded to integers."""
TOLERANCE = {"f64": 1e-6, "f32": 1e-3, "f16": 2e-2, "bf16": 3e-2, "q8": 4e-2}
"""Of the largest magnitude of an output: implementations add in different orders, and round to the precision.

Of quantised activations a few are one step off, where a number is next to the middle between two integers."""
ROUNDED_ROWS = 0.1
"""The same, where the program rounds activations to int8, and the model does not. Logits of a decoder of 12 layers
differ by 0.02 to 0.03, as those of llama.cpp do."""
_PRECISIONS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", QUANTISED: "q8"}


def precision(dtypes: Iterable[str]) -> str:
    """Return the lowest precision of floating-point numbers among the dtypes of weights, inputs and outputs."""
    order = list(TOLERANCE)
    return max((_PRECISIONS[dtype] for dtype in dtypes if dtype in _PRECISIONS), key=order.index, default="f32")
