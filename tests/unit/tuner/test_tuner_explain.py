"""Functions that only TVM's own rules schedule: a note names the nearest rule and what the function lacks."""

from __future__ import annotations

import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.target import canonical_target, target_from
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET, function
from tuner.inspection.submission import parse
from tuner.space.explain import without_rule


def _smallest(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    return function(x, topi.min(x, axis=1))


def _two_shapes() -> tvm.IRModule:
    x = te.placeholder((12, 20), name="x")
    return function(x, topi.sum(topi.sum(x, axis=1), axis=0))


def _two_products() -> tvm.IRModule:
    a, b = te.placeholder((8, 16), name="a"), te.placeholder((16, 16), name="b")
    return function(a, b, topi.nn.matmul(topi.nn.matmul(a, b), b))


def _doubles() -> tvm.IRModule:
    x = te.placeholder((12, 20), "float64", name="x")
    return function(x, topi.sum(x, axis=1))


WITHOUT = {
    "smallest": (_smallest(6, 30), "row_reduce and column_reduce are nearest", "reduces by something else"),
    "shapes": (_two_shapes(), "row_reduce", "the function reduces to 1 and 12"),
    "products": (_two_products(), "register_tile is nearest", "one reduction"),
    "doubles": (_doubles(), "row_reduce", "computes in float64"),
}


@pytest.mark.parametrize(("mod", "nearest", "lacking"), WITHOUT.values(), ids=WITHOUT)
def test_a_function_without_a_rule_says_which_is_nearest_and_what_it_lacks(
    mod: tvm.IRModule, nearest: str, lacking: str
) -> None:
    reason = without_rule(mod, TARGET)
    assert reason is not None
    assert reason.startswith(nearest)
    assert lacking in reason


@pytest.mark.parametrize("mod", [programs.softmax(4, 20), programs.product(8, 24, 16), programs.two_maps(12, 20)])
def test_a_function_of_a_rule_has_nothing_to_explain(mod: tvm.IRModule) -> None:
    assert without_rule(mod, TARGET) is None


def test_a_gpu_has_no_rules_to_explain() -> None:
    assert without_rule(_smallest(6, 30), target_from({"kind": "cuda", "arch": "sm_80"})) is None


def test_a_submission_notes_the_functions_without_a_rule() -> None:
    [parsed] = parse("tvm-json", module_to_json(_smallest(6, 30)), canonical_target(TARGET), None, None)
    [note] = parsed.left_alone
    assert note.startswith("main has the programs of TVM's rules alone: row_reduce")
    [parsed] = parse("tvm-json", module_to_json(programs.softmax(4, 20)), canonical_target(TARGET), None, None)
    assert parsed.left_alone == ()
