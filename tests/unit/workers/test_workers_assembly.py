"""The machine code of a scheduled program, with the lines of the program that its instructions come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import canonical_target, target_from
from tests.support.rule_programs import TARGET
from tests.support.tuner_programs import elementwise, matmul
from tuner.inspection.answers import Assembly
from tuner.inspection.listing import code_lines
from tuner.inspection.llvm_locations import with_subprograms
from tuner.space.builtin import builtin_space
from tuner.types import Workload
from workers.device.assembly import assembly

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork of a warm child works in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def first_trace(workload: Workload) -> str:
    space = builtin_space(module_from_json(workload.module_json), TARGET, 1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    return trace_to_json(schedule.trace)


def made(workload: Workload, trace_json: str | None, target_json: str) -> Assembly:
    [answer] = assembly(workload.module_json, trace_json, target_json)
    return answer


def test_instructions_of_parallel_loops_are_linked_with_the_program_and_its_source() -> None:
    workload = matmul()
    found = made(workload, first_trace(workload), canonical_target(TARGET))
    program, source = found.program.splitlines(), workload.script.splitlines()
    texts = found.text.splitlines()
    assert "located statement" not in found.program
    assert any("T.parallel" in line for line in program)
    assert found.hot_loop is not None
    loop = found.loops[found.hot_loop]
    inside = [line for line in found.lines if loop.first <= line.number <= loop.last]
    products = {line.program_line for line in inside if "vfmadd" in texts[line.number - 1]}
    [product] = products
    assert product is not None
    assert "+ X[" in program[product - 1]
    of_source = found.sources[product - 1]
    assert of_source is not None
    assert "+ X[" in source[of_source - 1]
    # The first values of the sum are set elsewhere, in the program and in its source.
    first_values = [n for n, line in enumerate(program) if line.endswith("] = T.float32(0.0)")]
    assert [source[(found.sources[n] or 0) - 1].strip() for n in first_values] == ["Z[v_b, v_i, v_j] = T.float32(0.0)"]
    assert loop.model is not None
    assert loop.model.work.vector_bytes == 32
    assert 0.5 < loop.model.peak_share <= 1.0


@pytest.mark.parametrize("workload", [matmul(), elementwise()], ids=["product", "double"])
def test_the_code_is_that_of_a_build_without_locations(workload: Workload) -> None:
    found = made(workload, None, canonical_target(TARGET))
    plain = scheduled_module(module_from_json(workload.module_json), None, TARGET)
    built = str(compile_module(plain, TARGET, argument_checks=False).inspect_source("asm"))
    assert [line.text for line in code_lines(found.text)] == [line.text for line in code_lines(built)]
    assert {line.program_line for line in found.lines} > {None}


def test_the_loops_of_another_processor_have_no_model() -> None:
    target = target_from({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1", "num-cores": 1})
    found = made(elementwise(), None, canonical_target(target))
    assert found.loops
    assert all(loop.model is None for loop in found.loops)
    assert found.hot_loop is not None
    loop = found.loops[found.hot_loop]
    assert {line.program_line for line in found.lines if loop.first < line.number < loop.last} > {None}


def test_a_module_without_locations_stays_as_it_is() -> None:
    assert with_subprograms("define i32 @f() {\n  ret i32 0\n}\n") == "define i32 @f() {\n  ret i32 0\n}\n"
