"""The machine code of a scheduled program, for people to read. Runs in a disposable child."""

from __future__ import annotations

import json
from collections.abc import Iterator

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.prepacking import split
from tuner.inspection.answers import Assembly
from workers.device import cuda


def assembly(module_json: str, trace_json: str | None, target_json: str) -> Iterator[Assembly]:
    """Yield the code of a workload with a trace applied, None for the baseline.

    For cuda it is the source of the kernels: a machine without the CUDA toolkit cannot go further.
    """
    target = target_from(target_json)
    trace = None if trace_json is None else json.loads(trace_json)
    mod, _ = split(scheduled_module(module_from_json(module_json), trace, target))
    if target.kind.name == "cuda":
        yield Assembly("cuda", cuda.source(mod, target))
    else:
        text = str(compile_module(mod, target, argument_checks=False).inspect_source("asm"))
        yield Assembly("asm", text)
