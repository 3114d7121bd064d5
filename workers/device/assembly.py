"""The machine code of a scheduled program, for people to read. Runs in a disposable child."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import tvm
from tvm.target import Target

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from, triple
from loopwright.codegen.weights.prepacking import split
from tuner.inspection.answers import Assembly, CodeLine, CodeLoop
from tuner.inspection.hot_loop import hottest, modelled
from tuner.inspection.listing import code_lines, loops
from tuner.inspection.llvm_locations import with_subprograms
from tuner.inspection.located import Located, located, sources
from workers.device import cuda

_FILE = "located"


def assembly(module_json: str, trace_json: str | None, target_json: str) -> Iterator[Assembly]:
    """Yield the code of a workload with a trace applied, None for the baseline.

    For cuda it is the source of the kernels: a machine without the CUDA toolkit cannot go further.
    """
    target = target_from(target_json)
    trace = None if trace_json is None else json.loads(trace_json)
    workload = module_from_json(module_json)
    mod, _ = split(scheduled_module(workload, trace, target))
    if target.kind.name == "cuda":
        yield Assembly("cuda", cuda.source(mod, target))
    else:
        yield _annotated(located(mod), located(workload), target)


def _annotated(program: Located, unscheduled: Located, target: Target) -> Assembly:
    text = _with_locations(compile_module(program.module, target, argument_checks=False))
    lines = code_lines(text)
    found = loops(lines)
    is_x86 = triple(target).startswith("x86_64")
    vector_bytes = 4 * MachineLimits.of(target).lanes
    return Assembly(
        "asm",
        text,
        [CodeLine(line.number, line.program_line) for line in lines],
        program.script,
        sources(program, unscheduled),
        [
            CodeLoop(
                loop.first,
                loop.last,
                loop.depth,
                modelled(lines, loop, vector_bytes) if loop.innermost and is_x86 else None,
            )
            for loop in found
        ],
        hottest(lines, found, program.calls),
    )


def _with_locations(built: tvm.runtime.Module) -> str:
    """Return the assembly of a module, with the locations of its parallel loops, too, where the code is the same."""
    text = str(built.inspect_source("asm"))
    file = Path(f"{_FILE}.ll").resolve()
    file.write_text(with_subprograms(str(built.inspect_source("ll"))))
    located_text = str(tvm.runtime.load_module(str(file)).inspect_source("asm"))
    same = [line.text for line in code_lines(text)] == [line.text for line in code_lines(located_text)]
    return located_text if same else text
