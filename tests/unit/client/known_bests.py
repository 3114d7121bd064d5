"""Programs, and bests of theirs that a fake service knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax
from tvm.s_tir import Schedule

from loopwright import frontends
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.serialization import trace_to_list
from tests.support.programs import MM_RELU, schedule_mm_relu
from tests.unit.client.fake_service import FakeService, lookup, records

LOOKUP = "/api/v1/workloads/lookup"
RECORDS = f"{LOOKUP}/records"
LLVM = {"kind": "llvm", "num-cores": 2}
HASH = function_digest(frontends.to_program(MM_RELU).module["main"])


def scheduled(mod: tvm.IRModule) -> Schedule:
    schedule = Schedule(mod, seed=1)
    schedule_mm_relu(schedule)
    return schedule


def serve(
    service: FakeService,
    *bests: dict[str, Any],
    auto: dict[str, Any] | None = None,
    imported: Sequence[dict[str, Any]] = (),
) -> None:
    answer = lookup(*bests, auto=auto, imported=imported)
    service.on("POST", LOOKUP, answer)
    service.on("POST", RECORDS, records(answer))


def two_layers() -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x, w1, w2 = (
        relax.Var(name, relax.TensorType(shape, "float32"))
        for name, shape in (("x", (1, 64)), ("w1", (64, 32)), ("w2", (32, 16)))
    )
    with builder.function("main", [x, w1, w2]):
        with builder.dataflow():
            hidden = builder.emit(relax.op.nn.relu(relax.op.matmul(x, w1)))
            out = builder.emit_output(relax.op.matmul(hidden, w2))
        builder.emit_func_output(out)
    return builder.get()


def layers(count: int) -> tvm.IRModule:
    """A model of so many functions, all different."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8), "float32"))
    weights = [relax.Var(f"w{i}", relax.TensorType((8 + i, 9 + i), "float32")) for i in range(count)]
    with builder.function("main", [x, *weights]):
        with builder.dataflow():
            for weight in weights:
                x = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            out = builder.emit_output(x)
        builder.emit_func_output(out)
    return builder.get()


def parallel_matmul(mod: tvm.IRModule) -> list[Any]:
    schedule = Schedule(mod)
    schedule.parallel(schedule.get_loops(schedule.get_sblock("matmul"))[1])
    return trace_to_list(schedule.trace)
