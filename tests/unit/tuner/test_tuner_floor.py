"""What is faster than the machine is no measurement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopwright.codegen.kinds import FailureKind, Stage
from tests.support.tuner_programs import elementwise
from tuner.floor import CALL_SECONDS, impossible, least_seconds
from tuner.types import Operation, TensorInfo

ARGS = (TensorInfo((1000, 1000), "float32"), TensorInfo((1000, 1000), "float32"))
FUNCTION = replace(elementwise(), args=ARGS, operation=Operation("matmul", "float32", 2e9))


@pytest.mark.parametrize(
    ("operation", "peak", "least"),
    [
        (Operation("matmul", "float32", 2e9), 1e11, 2e-3),  # 20 ms by the peak
        (Operation("matmul", "int8", 2e9), 1e11, 4e-6),  # whose peak is not known: 4 MB are written
        (Operation("copy", "float32", None), 1e11, 4e-6),
        (Operation("matmul", "float32", 1.0), 1e15, CALL_SECONDS),
        (Operation("matmul", "float32", 2e9), None, CALL_SECONDS),
    ],
)
def test_the_least_is_a_tenth_of_what_the_peaks_allow(operation: Operation, peak: float | None, least: float) -> None:
    found = least_seconds(replace(FUNCTION, operation=operation), (False, True), peak)
    assert found == pytest.approx(least)


def test_a_function_of_one_element_may_take_a_few_nanoseconds() -> None:
    scalar = replace(FUNCTION, args=(TensorInfo((), "int64"), TensorInfo((), "bool")), operation=Operation("equal"))
    assert impossible((4.4e-9, 4.5e-9), least_seconds(scalar, (False, True), 2e11), Stage.RUN) is None


def test_the_median_decides() -> None:
    assert impossible((1e-3, 3e-3, 3e-3), 2e-3, Stage.RUN) is None
    failure = impossible((1e-9, 1e-9, 3e-3), 2e-3, Stage.RUN)
    assert failure is not None
    assert (failure.stage, failure.kind) == (Stage.RUN, FailureKind.WRONG_RESULT)
    assert "1e-09 s" in failure.message
    assert "0.002 s" in failure.message
