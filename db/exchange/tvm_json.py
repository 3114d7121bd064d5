"""TVM's own tuning database in and out: the pair of files of MetaSchedule's ``JSONDatabase``, as text.

Imports TVM and reads what strangers sent: run it in a disposable child. The entry points are generators. In the files,
line n of the workloads is workload n - 1 of the records::

    ["<structural hash>", "<base64 of a length and the module's JSON>"]
    [<workload>, [<trace>, [<seconds>, …], <target>, [["TENSOR", <dtype>, <shape>], …]]]
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tvm
import tvm_ffi
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from db.clean_text import clean_text
from db.exchange.json_pair import LENGTH, RECORDS, WORKLOADS, workload_line
from loopwright.codegen.errors import InvalidModule, last_line
from loopwright.codegen.program.intrinsics import load_intrinsics, register_named
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import canonical_target, target_from
from tuner.errors import InvalidSpace
from tuner.guard import widening
from tuner.guard.module import check_callouts, load_module_json
from tuner.inspection.answers import RecordFiles, RecordLine, RecordsRead
from tuner.space.user import check_trace
from tuner.task import unschedulable
from tuner.types import Workload
from tuner.workload import make_workload, tensor_args

_FAILED_SECONDS = 1e9
"""TVM stores a failed measurement as one of 1e10 seconds; no real one takes thirty years."""

_T = TypeVar("_T")


def export(workloads: list[dict[str, Any]], records: list[dict[str, Any]], first: int = 0) -> Iterator[RecordFiles]:
    """Yield the files.

    Args:
        workloads: ``{"hash", "module_json"}`` each.
        records: the fields of a `RecordLine` each, of those workloads; one without a trace is skipped.
        first: the position of the first workload, if the texts will follow others.
    """
    positions = {workload["hash"]: position for position, workload in enumerate(workloads)}
    modules = [module_from_json(workload["module_json"]) for workload in workloads]
    shapes = [[["TENSOR", arg.dtype, list(arg.shape)] for arg in tensor_args(mod["main"])] for mod in modules]
    scheduled = [record for record in records if record["trace_json"] is not None]
    record_lines = []
    for record in scheduled:
        position = positions[record["workload_hash"]]
        trace, target = json.loads(record["trace_json"]), json.loads(record["target_json"])
        record_lines.append(_line([first + position, [trace, record["run_secs"], target, shapes[position]]]))
    workload_lines = [
        workload_line(str(tvm_ffi.structural_hash(mod) % 2**64), workload["module_json"])
        for mod, workload in zip(modules, workloads, strict=True)
    ]
    yield RecordFiles("".join(workload_lines), "".join(record_lines), len(records) - len(scheduled))


def read(workload_text: str, record_text: str) -> Iterator[RecordsRead]:
    """Yield what can be taken, and why the rest cannot.

    Equal workloads are listed once; the trace of each record was replayed on its workload. An error is
    ``"database_tuning_record.json line 7: …"``. No text makes it raise.
    """
    errors: list[str] = []
    known = dict(_take(WORKLOADS, workload_text, _workload, errors))
    records = dict(_take(RECORDS, record_text, lambda line: _record(line, known), errors))
    workloads = {workload.hash: workload for workload in reversed(known.values())}
    yield RecordsRead(list(reversed(workloads.values())), list(records.values()), errors)


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _take(file: str, text: str, take: Callable[[str], _T], errors: list[str]) -> Iterator[tuple[int, _T]]:
    """Return what ``take`` makes of each line, by position; its refusals go to ``errors``. Blank lines say nothing."""
    for position, line in enumerate(text.split("\n")):
        if not line.strip():
            continue
        try:
            yield position, take(line)
        except Exception as error:  # TVM raises whatever a stranger's values make it meet.
            errors.append(clean_text(f"{file} line {position + 1}: {last_line(error)}"))


def _workload(line: str) -> Workload:
    entry = json.loads(line)
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str)):
        raise InvalidModule("not a workload: expected [hash, module in base64], as TVM's JSONDatabase writes it")
    packed = base64.b64decode(entry[1])
    if len(packed) < LENGTH.size or LENGTH.unpack_from(packed) != (len(packed) - LENGTH.size,):
        raise InvalidModule("the module is cut off, or not base64 as TVM's JSONDatabase writes it")
    mod = load_module_json(packed[LENGTH.size :].decode())
    functions = {str(var.name_hint): func for var, func in mod.functions.items()}
    func = functions.get("main")
    if len(functions) != 1 or not isinstance(func, tvm.tirx.PrimFunc):
        raise InvalidModule("not a workload of MetaSchedule: its module must hold one PrimFunc, named main")
    if findings := check_callouts(func):
        raise InvalidModule(
            f"the function calls external code ({'; '.join(findings)}); a submitted function may only compute"
        )
    if reason := unschedulable(func):
        raise InvalidModule(f"the function cannot be scheduled: {reason}")
    return make_workload(func, "main")


def _record(line: str, known: dict[int, Workload]) -> RecordLine:
    entry = json.loads(line)
    if not (isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int):
        raise ValueError("not a record: expected [workload, [trace, seconds, target, arguments]]")
    position, fields = entry
    if not (isinstance(fields, list) and len(fields) == 4):
        raise ValueError("not a record: expected [trace, seconds, target, arguments] of the workload")
    if position not in known:
        raise ValueError(f"its workload, {WORKLOADS} line {position + 1}, is missing or was not taken")
    trace, run_secs, target_fields, _ = fields
    samples = _samples(run_secs)
    if not isinstance(target_fields, dict | str):
        raise ValueError("it does not say for which target it was measured")
    target = target_from(target_fields)
    return RecordLine(
        workload_hash=known[position].hash,
        trace_json=_replayed(module_from_json(known[position].module_json), trace, target),
        run_secs=samples,
        target_json=canonical_target(target),
    )


def _samples(run_secs: Any) -> list[float]:
    if not (isinstance(run_secs, list) and run_secs and all(type(value) in (int, float) for value in run_secs)):
        raise ValueError("it has no measured seconds")
    samples = [float(value) for value in run_secs]
    if any(value >= _FAILED_SECONDS for value in samples):
        raise ValueError("a failed measurement, left out: TVM writes 1e10 seconds for what has no latency")
    if not all(math.isfinite(value) and value > 0 for value in samples):
        raise ValueError("its seconds are not positive numbers")
    return samples


def _replayed(mod: tvm.IRModule, trace: Any, target: Target) -> str:
    """Return the trace as TVM writes it after a replay, which must take all its decisions as they are.

    Foreign intrinsics are held back by their names, and what the replayed program calls must come from them alone:
    a trace can bring expressions of its own (in index maps, say).
    """
    check_trace(trace, "the trace", also=frozenset({"Tensorize", widening.STEP}))
    changes = widening.dtype_changes(trace)
    if any(change != widening.TO_INT16 for change in changes):
        raise InvalidSpace(f"the trace uses {widening.STEP} for more than keeping bytes in int16")
    brought = _intrinsic_findings(trace, target)
    # Unlike the search's, this schedule says why a step fails; rendering the program would take too long even here.
    schedule = Schedule(mod, seed=1, debug_mask="none", error_render_level="fast")
    try:
        Trace.apply_json_to_schedule(trace, schedule)
    except Exception as error:
        raise InvalidSpace(f"the trace does not apply to its workload: {last_line(error)}") from error
    if foreign := [finding for finding in check_callouts(schedule.mod["main"]) if finding not in brought]:
        raise InvalidSpace(f"the trace brings foreign code into the program: {'; '.join(foreign)}")
    if changes and (lost := widening.lost_values(mod["main"], schedule.mod["main"])):
        raise InvalidSpace(f"the trace keeps in int16 what is not of one byte: {lost[0]}")
    trace_json = trace_to_json(schedule.trace)
    if json.loads(trace_json)[1] != trace[1]:
        raise InvalidSpace("the trace's decisions are incomplete or do not fit its workload")
    return trace_json


def _intrinsic_findings(trace: Any, target: Target) -> set[str]:
    """Return what the tensor intrinsics that a trace names call. Raises InvalidSpace for one of neither TVM nor
    Loopwright."""
    names = [attributes[0] if attributes else None for kind, _, attributes, _ in trace[0] if kind == "Tensorize"]
    if names:
        load_intrinsics(target)
    findings: set[str] = set()
    for name in names:
        intrinsic = None
        if isinstance(name, str):
            register_named(name)
            intrinsic = TensorIntrin.get(name, allow_missing=True)
        if intrinsic is None:
            kind = target.kind.name
            raise InvalidSpace(f"the trace tensorizes with {name!r}, which is no intrinsic of TVM for {kind}")
        findings.update(check_callouts(intrinsic.impl))
    return findings
