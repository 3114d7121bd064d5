"""Small programs, spaces and tasks that the tuner's tests share."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.testing import te_workload

from loopwright.codegen.kinds import Origin
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.space.builtin import builtin_space
from tuner.types import MeasureCandidate, TaskSpec, Workload
from tuner.workload import make_workload

LLVM = '{"kind": "llvm", "num-cores": 2}'

ADD_ONE = """
@T.prim_func(s_tir=True)
def {name}(A: T.Buffer(({extent},), "{dtype}"), B: T.Buffer(({extent},), "{dtype}")):
    for i in T.serial({extent}):
        with T.sblock("B"):
            vi = T.axis.spatial({extent}, i)
            B[vi] = A[vi] + T.{dtype}({constant})
"""


def add_one(
    name: str = "main", extent: int | str = 16, dtype: str = "float32", constant: str = "1"
) -> tvm.tirx.PrimFunc:
    return tvm.script.from_source(ADD_ONE.format(name=name, extent=extent, dtype=dtype, constant=constant))


def add_one_script(**fields: str) -> str:
    return ADD_ONE.format(**{"name": "main", "extent": "16", "dtype": "float32", "constant": "1"} | fields)


@functools.cache
def matmul() -> Workload:
    """128 cubed, float32: the smallest of TVM's sample products."""
    return make_workload(te_workload.create_te_workload("GMM", 0), "matmul")


@functools.cache
def elementwise(extent: int = 64) -> Workload:
    a = te.placeholder((extent, extent), name="A")
    return make_workload(te.create_prim_func([a, te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="B")]), "double")


def task(workload: Workload, weight: int = 1) -> TaskSpec:
    return TaskSpec(workload, weight)


def mlp(layers: int, batch: int | tirx.Var = 4, width: int = 8) -> tvm.IRModule:
    """Layers of one shape, each a product and relu, then softmax."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, width), "float32"))
    weights = [relax.Var(f"w{i}", relax.TensorType((width, width), "float32")) for i in range(layers)]
    with builder.function("main", [x, *weights]):
        with builder.dataflow():
            hidden = x
            for weight in weights:
                hidden = builder.emit(relax.op.nn.relu(builder.emit(relax.op.matmul(hidden, weight))))
            out = builder.emit_output(relax.op.nn.softmax(hidden))
        builder.emit_func_output(out)
    return builder.get()


def traced(workload: Workload, schedule: Callable[[Schedule], object]) -> list[object]:
    """A stochastic schedule function as the trace that a user sends: TVM's ``[instructions, decisions]``."""
    sch = Schedule(module_from_json(workload.module_json), seed=1)
    schedule(sch)
    return json.loads(trace_to_json(sch.trace))


def split_outer(sch: Schedule) -> None:
    """One choice: how the first loop of block B is split in two."""
    loop = sch.get_loops(sch.get_sblock("B"))[0]
    sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=64))


def tile_both(sch: Schedule) -> None:
    """Two choices, several hundred programs: how both loops of block B are tiled. Quick to replay."""
    i, j = sch.get_loops(sch.get_sblock("B"))
    i0, i1, i2 = sch.split(i, sch.sample_perfect_tile(i, n=3, max_innermost_factor=64))
    j0, j1, j2 = sch.split(j, sch.sample_perfect_tile(j, n=3, max_innermost_factor=64))
    sch.reorder(i0, j0, i1, j1, i2, j2)
    sch.parallel(i0)
    sch.vectorize(j2)


def candidate(workload: Workload, seed: int, target_json: str = LLVM) -> MeasureCandidate:
    """A point of the built-in space, drawn from ``seed``."""
    space = builtin_space(module_from_json(workload.module_json), target_from(target_json), seed=1)
    schedule = space.replay(space.traces[0], seed)
    assert schedule is not None
    return MeasureCandidate(trace_to_json(schedule.trace), Origin.RANDOM)
