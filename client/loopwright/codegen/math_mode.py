"""Math modes: in what precision products of float32 may be computed. Imports no TVM."""

from __future__ import annotations

from typing import Literal

MathMode = Literal["fp32", "tf32"]
"""With ``tf32``, products and convolutions of float32 may round their factors to TF32: 8 bits of exponent, as float32
has, and 10 of mantissa instead of 23. Products are exact, and their sums are of float32."""

FP32: MathMode = "fp32"
TF32: MathMode = "tf32"
