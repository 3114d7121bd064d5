"""The least time of a function at the peaks of a device."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from db.views import Peaks, WorkloadView
from service.workloads.roof import ARITHMETIC, DRAM, Roof, roof
from tuner.types import CacheRate, Operation, TensorInfo

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PEAKS = Peaks("float32", 1e9, 1e6, NOW, (CacheRate("L1", 4096, 8e6), CacheRate("L2", 40_960, 2e6)))


def reading(*elements: int, flop: float | None = None, dtype: str = "float32") -> WorkloadView:
    args = tuple(TensorInfo((count,), "float32") for count in elements)
    return WorkloadView("hash", "family", "name", args, Operation("", dtype, flop), "tvm", NOW, 0)


def check(found: Roof | None, seconds: float, limit: str) -> None:
    assert found is not None
    assert (found.seconds, found.limit) == (pytest.approx(seconds), limit)


@pytest.mark.parametrize(
    ("elements", "memory", "rate"),
    [(1024, "L1", 8e6), (1025, "L2", 2e6), (10_240, "L2", 2e6), (10_241, DRAM, 1e6)],
)
def test_the_smallest_memory_with_room_for_all_arguments_limits(elements: int, memory: str, rate: float) -> None:
    first = elements // 3
    check(roof(reading(first, elements - first), PEAKS, None), 4 * elements / rate, memory)


def test_arithmetic_limits_what_moves_little() -> None:
    # 4,000 bytes take 0.5 ms in the L1, as 5e5 operations do.
    check(roof(reading(1000, flop=4.9e5), PEAKS, None), 5e-4, "L1")
    check(roof(reading(1000, flop=5.1e5), PEAKS, None), 5.1e-4, ARITHMETIC)


def test_without_caches_the_dram_limits() -> None:
    check(roof(reading(10), replace(PEAKS, caches=()), None), 4e-5, DRAM)


def test_peaks_of_another_data_type_limit_only_what_computes_nothing() -> None:
    assert roof(reading(1000, flop=10.0, dtype="int8"), PEAKS, None) is None
    for flop in (None, 0.0):
        check(roof(reading(1000, flop=flop, dtype="int8"), PEAKS, None), 5e-4, "L1")
    assert roof(reading(1000), None, None) is None


def test_a_roof_that_a_measurement_breaks_is_none() -> None:
    # A gather of some rows of 4,000 bytes.
    assert roof(reading(1000), PEAKS, 1e-4) is None
    check(roof(reading(1000), PEAKS, 4.5e-4), 5e-4, "L1")
