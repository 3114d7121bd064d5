"""Agreement of a compiled program with the model itself: calls of both on the same inputs. Needs TVM.

A certificate says that a schedule computes what TVM's own program of a function computes. It says nothing about what
made that program of the model: the importer, and the rewritings of its graph. This comparison covers them.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.target import Target, codegen

from loopwright.applying.report import Agreement
from loopwright.codegen.arrays import compare
from loopwright.codegen.functions import has_relax
from loopwright.codegen.graph.int8_rows import permits_int8_activations
from loopwright.codegen.host import cpu
from loopwright.codegen.program import linking
from loopwright.codegen.target import instructions
from loopwright.errors import WrongAnswer
from loopwright.frontends.precision import QUANTISED, ROUNDED_ROWS, TOLERANCE, precision
from loopwright.frontends.reference import Call, Reference

_CHANGES = 4
"""How many times the change by rounding the inputs an output may differ: each layer rounds as well. Not tuned.

A deep model may amplify rounding beyond the tolerance of its precision; ONNX Runtime with and without its optimisations
differs as much then.
"""


_STEP = 1.0
"""By how much integers may differ that a model rounds activations to."""
_EQUAL = 1e-12


def agreement(
    reference: Reference | None, executable: Any, mod: tvm.IRModule, target: Target, weights: Sequence[Any] = ()
) -> Agreement | None:
    """Call a compiled module and its model, and compare the outputs in number, dtype, shape and values.

    A second call, with special values in the inputs, is reported only: what a model that nobody meant for such values
    makes of them is no reason to refuse it.

    Args:
        weights: what ``main`` takes behind the model's inputs.

    Returns:
        None if there is nothing to compare with: the model has no framework of its own, or its example inputs have
        other extents than the module; or if the module is not for this machine's CPU.

    Raises:
        WrongAnswer: an output differs; the message says how.
    """
    if reference is None or not has_relax(mod) or not runs_here(target):
        return None
    call = reference.call()
    if call is None or not _takes(mod, [*call.inputs, *weights]):
        return None
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]

    def run(*inputs: Any) -> Any:
        return main(*inputs, *weights)

    limit = ROUNDED_ROWS if permits_int8_activations(mod) else TOLERANCE[precision(call.dtypes)]
    found = _compared(run, call, reference.name, limit)
    if isinstance(found, str):
        raise WrongAnswer(found)
    special = reference.call(special=True)
    other = None if special is None else _compared(run, special, reference.name, limit)
    return Agreement(reference.name, found, limit, other if other is None or isinstance(other, str) else "")


def _compared(run: Any, call: Call, name: str, limit: float) -> float | str:
    """Return the largest error of a program's outputs; or how they differ from those of the framework ``name``."""
    outputs = list(_tensors(run(*(tvm.runtime.tensor(each.numpy()) for each in map(_tensor, call.inputs)))))
    expected = list(map(_tensor, call.outputs))
    if len(outputs) != len(expected):
        return f"the program returns {len(outputs)} tensors, and {name} {len(expected)}"
    worst = 0.0
    for position, (output, wanted) in enumerate(zip(outputs, expected, strict=True)):
        form, its_form = (f"{each.dtype}{list(map(int, each.shape))}" for each in (output, wanted))
        if form != its_form:
            return f"output {position} is {form}, and {name} returns {its_form}"
        rtol = limit if "float" in str(output.dtype) else 0.0
        if QUANTISED in call.dtypes and str(output.dtype) in ("int8", "uint8"):
            found = compare(output.numpy(), wanted.numpy(), _EQUAL, _STEP)
        else:
            found = compare(output.numpy(), wanted.numpy(), rtol)
        if math.isinf(found.max_abs_error):
            return f"output {position} has NaN or infinities where {name}'s has none, or the other way round"
        if not found.close and rtol and call.nudged is not None:
            change = _change(_tensor(call.nudged()[position]).numpy(), wanted.numpy())
            found = compare(output.numpy(), wanted.numpy(), rtol, _CHANGES * change)
        if not found.close:
            return (
                f"output {position} differs from {name}'s by {found.max_rel_error:.3g} of its largest value "
                f"({found.max_abs_error:.3g}); {rtol:g} is allowed"
            )
        worst = max(worst, found.max_rel_error)
    return worst


def _change(nudged: Any, wanted: Any) -> Any:
    """Return by how much each channel, or each row if there are no more than two axes, changes at most."""
    with np.errstate(invalid="ignore"):
        change = np.nan_to_num(np.abs(nudged.astype("float64") - wanted.astype("float64")), posinf=0.0)
    return change.max(axis=tuple(range(2, change.ndim)) or -1, keepdims=True, initial=0.0) if change.ndim else change


def _tensor(value: Any) -> Any:
    """Return an array or a tensor of a framework, whose memory TVM may not take as it is, as one of TVM."""
    return tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else tvm.runtime.from_dlpack(value)


def _tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors within what a Relax function returned."""
    if hasattr(value, "numpy"):
        yield value
    else:
        for each in value:
            yield from _tensors(each)


def _takes(mod: tvm.IRModule, inputs: Any) -> bool:
    """Return whether ``main`` takes inputs of these extents; symbolic ones take all."""
    main = next((func for var, func in mod.functions_items() if var.name_hint == "main"), None)
    if not isinstance(main, relax.Function) or len(main.params) != len(inputs):
        return False
    return all(_fits(param, value.shape) for param, value in zip(main.params, inputs, strict=True))


def _fits(param: relax.Var, extents: Sequence[int]) -> bool:
    shape = getattr(param.ty, "shape", None)
    if shape is None or len(shape) != len(extents):
        return False
    return all(int(getattr(wanted, "value", extent)) == extent for wanted, extent in zip(shape, extents, strict=True))


def runs_here(target: Target) -> bool:
    """Return whether code for a target runs on this machine's CPU."""
    if target.kind.name != "llvm" or linking.machine(target) != platform.machine():
        return False
    try:
        # Not LLVM's own detection, which goes by the model that a hypervisor reports.
        name = cpu.x86_generation(*cpu.flags()) if platform.machine() == "x86_64" else codegen.llvm_get_system_cpu()
    except OSError:  # no Linux
        return False
    return instructions(target) <= instructions(Target({"kind": "llvm", "mcpu": name}))
