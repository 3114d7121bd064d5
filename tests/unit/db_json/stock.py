"""What stock MetaSchedule writes and reads."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace

from db.exchange import tvm_json
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.target import target_from
from tests.support.programs import product_relu
from tuner.codec import encode
from tuner.workload import tune_context

MM_RELU = product_relu(64)
DOT = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((16,), "int32")):
    for i, k in T.grid(16, 4):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])
"""
TARGET = target_from({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2})


def module(source: str) -> tvm.IRModule:
    parsed = tvm.script.from_source(source)
    return parsed if isinstance(parsed, tvm.IRModule) else normal_form(parsed)


def schedules(mod: tvm.IRModule) -> list[Schedule]:
    """One schedule of each sketch of TVM's design space, with what its post-processors add."""
    generator = ms.space_generator.PostOrderApply()
    found = []
    for sketch in tune_context(mod, TARGET, generator, 7).generate_design_space():
        schedule = Schedule(mod, seed=5)
        Trace.apply_json_to_schedule([sketch.trace.as_json()[0], []], schedule)
        schedule.enter_postproc()
        assert all(postproc.apply(schedule) for postproc in generator.postprocs)
        found.append(schedule)
    return found


def write(folder: Path, entries: list[tuple[Schedule, tvm.IRModule, list[float]]]) -> tuple[str, str]:
    """The texts of a JSONDatabase to which these records were committed."""
    database = ms.database.JSONDatabase(work_dir=str(folder))
    for schedule, mod, run_secs in entries:
        workload = database.commit_workload(mod)
        arguments = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
        database.commit_tuning_record(ms.database.TuningRecord(schedule.trace, workload, run_secs, TARGET, arguments))
    return (folder / "database_workload.json").read_text(), (folder / "database_tuning_record.json").read_text()


def load(folder: Path, pair: dict[str, Any]) -> ms.database.JSONDatabase:
    folder.mkdir()
    for name in ("database_workload", "database_tuning_record"):
        (folder / f"{name}.json").write_text(pair[name])
    return ms.database.JSONDatabase(work_dir=str(folder), allow_missing=False)


def workload_line(module_json: str) -> str:
    """A line of database_workload.json with any text in the module's place."""
    packed = struct.pack("<Q", len(module_json.encode())) + module_json.encode()
    return json.dumps(["1", base64.b64encode(packed).decode()])


def record_line(trace: Any, run_secs: Any = (0.001,), workload: Any = 0, target: Any = None) -> str:
    target = {"kind": "llvm"} if target is None else target
    return json.dumps([workload, [trace, run_secs, target, []]])


def read(workload_text: str, record_text: str) -> dict[str, Any]:
    (value,) = tvm_json.read(workload_text, record_text)
    fields: dict[str, Any] = encode(value)
    return fields


def export(workloads: list[dict[str, Any]], records: list[dict[str, Any]]) -> dict[str, Any]:
    (value,) = tvm_json.export(workloads, records)
    fields: dict[str, Any] = encode(value)
    return fields
