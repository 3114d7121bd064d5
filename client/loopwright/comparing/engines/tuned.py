"""Loopwright as a user calls it: ``Client.compile``, and TVM's virtual machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import loopwright
from loopwright.comparing.case import Array, Case
from loopwright.comparing.engines.engine import Prepare, Prepared


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    """Yield the one way: the number of threads is for `Client.compile` to choose."""
    yield "compile", lambda: _prepared(case)


def _prepared(case: Case) -> Prepared:
    with loopwright.Client() as client:
        model, target = case.program()
        compiled = client.compile(model, target, verify=False)
        report = client.last_report
    assert report is not None
    tuned = sum(function.outcome == "tuned" for function in report.functions)
    baselines = len(report.hits) - tuned
    unscheduled = f", {baselines} best as TVM compiles them" if baselines else ""
    return on_virtual_machine(compiled, case, f"{tuned} of {len(report.functions)} functions tuned{unscheduled}")


def on_virtual_machine(compiled: Any, case: Case, note: str) -> Prepared:
    """Return a compiled Relax module, on inputs that were copied to memory as TVM wants it."""
    import tvm
    from tvm import relax

    inputs = case.tvm_inputs()
    main = relax.VirtualMachine(compiled, tvm.cpu())["main"]

    def call() -> Any:
        return main(*inputs)

    return Prepared(call, lambda: as_arrays(call()), note)


def as_arrays(value: Any) -> list[Array]:
    """Return the tensors within what a Relax function returned as arrays; bf16 as f32."""
    if not hasattr(value, "numpy"):
        return [array for each in value for array in as_arrays(each)]
    array = value.numpy()
    return [array.astype("float32") if array.dtype.name == "bfloat16" else array]
