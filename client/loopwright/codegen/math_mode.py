"""Math modes: in what precision products of float32 may be computed. Imports no TVM."""

from __future__ import annotations

from typing import Any, Literal

MathMode = Literal["fp32", "tf32"]
"""With ``tf32``, products and convolutions of float32 may round their factors to TF32: 8 bits of exponent, as float32
has, and 10 of mantissa instead of 23. Products are exact, and their sums are of float32."""

FP32: MathMode = "fp32"
TF32: MathMode = "tf32"
TF32_INTRINSICS = "loopwright.tf32_"
"""Begins the names of the tensor intrinsics that round to TF32."""
TF32_FUNCTIONS = "loopwright_tf32_"
"""Begins the names of the CUDA functions that those intrinsics call."""


def applied_math(trace: list[Any] | None) -> MathMode:
    """Return the mode in which a trace ``[instructions, decisions]`` multiplies float32; None is the baseline."""
    if trace is None:
        return FP32
    names = [str(attributes[0]) for kind, _, attributes, _ in trace[0] if kind == "Tensorize"]
    return TF32 if any(name.startswith(TF32_INTRINSICS) for name in names) else FP32
