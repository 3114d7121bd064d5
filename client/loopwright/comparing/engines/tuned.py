"""Loopwright as a user calls it: ``Client.compile``, and TVM's virtual machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import loopwright
from loopwright.applying.report import ApplyReport
from loopwright.comparing.case import Array, Case
from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.results.units import plural


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    """Yield one way: the number of threads is for `Client.compile` to choose.

    Functions without a best get the first choices of their rules, as with ``tune="instant"``: unscheduled, one of them
    may take longer than all others together.
    """
    yield "compile", lambda: _prepared(case)


def _prepared(case: Case) -> Prepared:
    with loopwright.Client() as client:
        model, target = case.program()
        compiled = client.compile(model, target, verify=False, tune="instant")
        report = client.last_report
    assert report is not None
    return on_virtual_machine(compiled, case, _note(report))


def _note(report: ApplyReport) -> str:
    """Return how many functions have which kind of schedule."""
    outcomes = Counter(function.outcome for function in report.functions)
    kinds = {
        f"{outcomes['baseline']} best as TVM compiles them": outcomes["baseline"],
        f'{plural(outcomes["predicted"], "first choice")} of tune="instant", uncertified': outcomes["predicted"],
    }
    tuned = f"{outcomes['tuned']} of {plural(len(report.functions), 'function')} tuned"
    return ", ".join([tuned, *(words for words, count in kinds.items() if count)])


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
