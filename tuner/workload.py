"""Convert a function to the workload that is tuned and stored, and to the context of TVM's rules."""

from __future__ import annotations

from typing import Any

import tvm
import tvm.s_tir
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from loopwright.codegen.program.argument_values import argument_values
from loopwright.codegen.program.digest import normal_form, workload_digest, workload_family
from loopwright.codegen.program.intrinsics import only_intrinsics_of
from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.target import with_assumed_attributes
from tuner.operation import operation
from tuner.types import TensorInfo, Workload


def make_workload(func: tvm.tirx.PrimFunc, name: str) -> Workload:
    """Return the workload that a PrimFunc is, called ``name``. Static shapes only."""
    mod = normal_form(func)
    return Workload(
        hash=workload_digest(mod),
        family=workload_family(mod),
        name=name,
        module_json=module_to_json(mod),
        script=str(mod.script()),
        args=tensor_args(mod["main"]),
        operation=operation(mod),
    )


def tensor_args(func: tvm.tirx.PrimFunc) -> tuple[TensorInfo, ...]:
    """Describe the buffer parameters, in order. Static shapes only."""
    return tuple(
        TensorInfo(tuple(int(extent) for extent in buffer.shape), str(buffer.dtype), values)
        for buffer, values in zip(func.params, argument_values(func), strict=True)
    )


def tune_context(mod: tvm.IRModule, target: Target, space: Any, seed: int) -> ms.TuneContext:
    """Return a TuneContext on one thread (the host's other cores belong to builders); ``seed`` in [1, 2^31-1]."""
    with only_intrinsics_of(target):
        return ms.TuneContext(
            mod=mod, target=with_assumed_attributes(target), space_generator=space, rand_state=seed, num_threads=1
        )
