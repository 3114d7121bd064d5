"""Which vectors a processor with AVX-512 gets, by their measured speeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.codegen.machine import vector_width
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.target import target_from


@pytest.mark.parametrize(
    ("mcpu", "relative_speed", "attributes"),
    [
        ("skylake-avx512", 2.0, ["-prefer-256-bit"]),
        ("icelake-server", 1.0, ["-prefer-256-bit"]),
        ("skylake-avx512", 0.7, []),
        ("znver4", 1.0, []),
        ("znver4", 0.7, ["+prefer-256-bit"]),
    ],
)
def test_llvm_is_told_where_it_would_make_the_slower_vectors(
    mcpu: str, relative_speed: float, attributes: list[str]
) -> None:
    assert vector_width.attributes(mcpu, relative_speed) == attributes
    machine = MachineLimits.of(target_from({"kind": "llvm", "mcpu": mcpu, "mattr": attributes}))
    assert machine.lanes == (16 if relative_speed >= 1 else 8)


@pytest.mark.skipif(
    "avx512f" not in Path("/proc/cpuinfo").read_text(), reason="the processor has no vectors of 512 bits"
)
def test_vectors_of_512_bits_are_measured() -> None:
    """No processor is slower with them by half, or more than twice as fast; noise may add a little."""
    assert 0.4 < vector_width.relative_speed("x86-64-v4") < 4.0
