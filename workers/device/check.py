"""Correctness of the contenders of a closing race: their results against those of the unscheduled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.codegen.arrays import Array, compare, tolerance
from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.codegen.math_mode import FP32, MathMode
from tuner.types import Failure, TensorInfo
from workers.device.arguments import draw

Call = Callable[[Sequence[Array]], Sequence[Array]]
"""Calls a program on arguments, and returns all of them as it left them."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Largest differences from the reference, absolute and as a share of the largest reference value."""

    max_abs_error: float = 0.0
    max_rel_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Expected:
    """One set of inputs, and the values of all arguments after a call of the unscheduled program.

    Arguments that the function only reads are compared, too: a program that overwrites its inputs is wrong.
    """

    kind: str
    args: Sequence[TensorInfo]
    inputs: Sequence[Array]
    results: Sequence[Array]
    math: MathMode = FP32
    """How the programs that are compared may multiply float32."""


def expected(
    call: Call, args: Sequence[TensorInfo], outputs: Sequence[bool], kind: str, seed: int, math: MathMode = FP32
) -> Expected:
    """Draw inputs of a kind (`loopwright.codegen.arrays.DRAWS`) and call the unscheduled program."""
    inputs = draw(args, outputs, kind, seed)
    return Expected(kind, args, inputs, call(inputs), math)


def check(call: Call, expected: Expected, before: Agreement) -> Agreement | Failure:
    """Call a program on the inputs and compare its results; ``before`` are the differences on other inputs.

    Raises what the call raises.
    """
    agreement = before
    results = call(expected.inputs)
    for position, (result, reference, info) in enumerate(zip(results, expected.results, expected.args, strict=True)):
        comparison = compare(result, reference, tolerance(info.dtype, expected.math))
        if not comparison.close:
            message = (
                f"argument {position} differs from the unscheduled program's by up to {comparison.max_abs_error:.3g} "
                f"({comparison.max_rel_error:.3g} of its largest value) on {expected.kind} inputs"
            )
            return Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, message)
        agreement = Agreement(
            max(agreement.max_abs_error, comparison.max_abs_error),
            max(agreement.max_rel_error, comparison.max_rel_error),
        )
    return agreement
