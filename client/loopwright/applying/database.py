"""The service's bests for a target, as a TVM tuning database. Needs TVM.

TVM's own databases ignore the target of a query, commit a workload when it is only asked for, and cannot say that
the unscheduled program is the best one. This one asks the service when a program is asked for, and is read-only: it
answers None for a program that has no schedule to apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from loopwright.applying.lookup import Ask, digests, digests_of, resolved
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.schedule import new_schedule, replay
from loopwright.codegen.versions import check_codegen_version
from loopwright.results.best import Best


def as_database(ask: Ask, target: Target | None) -> Any:
    """Return a ``tvm.s_tir.meta_schedule.Database`` of the certified bests for a target.

    Use it with ``MetaScheduleApplyDatabase``, ``relax.get_pipeline("zero")`` under ``with target, database:``, or
    ``relax_integration.compile_relax``. Plain ``relax.build`` and ``tvm.compile`` never ask a database. Committing to
    it raises: results enter through the service.

    It asks the service for a program when TVM first asks for it, and keeps the answer. TVM asks for one function at a
    time, so that is one small request a function; ``look_up(mod)`` asks for all functions of a lowered module in one.
    ``get_all_tuning_records()`` are those of the programs that were asked for so far and whose best is a schedule;
    ``len()`` is their number, but at least 1. A program that is best left as it is has no record, and TVM then leaves
    it as it is.

    Its ``hits`` and ``misses`` are the names of the functions that TVM asked for, found and not.

    Args:
        ask: asks the service about workload hashes.
        target: what the bests are for; None for what the service takes for ``auto``, which its first answer says.
    """
    bests: dict[str, Best | None] = {}
    records: dict[str, Any] = {}
    known_target = target

    def learn(hashes: Iterable[str]) -> Target | None:
        """Ask about the hashes that were not asked about yet; returns the target."""
        nonlocal known_target
        unknown = [digest for digest in dict.fromkeys(hashes) if digest not in bests]
        if unknown:
            answer = ask(unknown)
            known_target = known_target or resolved(answer)
            bests.update(dict.fromkeys(unknown), **{hit.workload_hash: Best.of(hit.best) for hit in answer.hits})
        return known_target

    def record_of(mod: tvm.IRModule) -> Any:
        """Return the record of a module with one PrimFunc, or None."""
        funcs = prim_funcs(mod)
        if len(funcs) != 1:
            return None
        [(_, func)] = funcs
        candidates = digests_of(func)
        serves = learn(candidates)
        best = next((bests[digest] for digest in candidates if bests[digest] is not None), None)
        if best is None or best.trace is None:
            return None
        if candidates[0] not in records:
            check_codegen_version(best.codegen_version)
            workload = normal_form(func)
            trace = replay(workload, best.trace, serves).trace
            records[candidates[0]] = ms.database.TuningRecord(
                trace, ms.database.Workload(workload), [best.best_us * 1e-6], serves
            )
        return records[candidates[0]]

    @derived_object
    class CertifiedBests(ms.database.PyDatabase):
        def __init__(self) -> None:
            super().__init__()
            self.hits: set[str] = set()
            self.misses: set[str] = set()

        def look_up(self, mod: tvm.IRModule) -> None:
            learn(digest for each in digests(mod).values() for digest in each)

        def has_workload(self, mod: tvm.IRModule) -> bool:
            return record_of(mod) is not None

        def commit_workload(self, mod: tvm.IRModule) -> Any:
            record = record_of(mod)
            return ms.database.Workload(mod) if record is None else record.workload

        def commit_tuning_record(self, record: Any) -> None:
            raise NotImplementedError("this database is read-only: results enter through Client.import_records")

        def get_top_k(self, workload: Any, top_k: int) -> list[Any]:
            record = record_of(workload.mod)
            return [record] if record is not None and top_k > 0 else []

        def get_all_tuning_records(self) -> list[Any]:
            return list(records.values())

        def query_tuning_record(self, mod: tvm.IRModule, target: Target, workload_name: str | None = None) -> Any:
            record = None
            if known_target is None or target.kind.name == known_target.kind.name:
                record = record_of(mod)
            if record is not None and target.kind.name != record.target.kind.name:
                record = None  # the first answer said what auto means
            (self.misses if record is None else self.hits).add(str(workload_name or "main"))
            return record

        def query_schedule(self, mod: tvm.IRModule, target: Target, workload_name: str | None = None) -> Any:
            record = self.query_tuning_record(mod, target, workload_name)
            if record is None:
                return None
            schedule = new_schedule(record.workload.mod)
            record.trace.apply_to_schedule(schedule, remove_postproc=False)
            return schedule

        def query_ir_module(self, mod: tvm.IRModule, target: Target, workload_name: str | None = None) -> Any:
            schedule = self.query_schedule(mod, target, workload_name)
            return None if schedule is None else schedule.mod

        def __len__(self) -> int:
            return max(1, len(records))  # the pipeline "zero" takes an empty database for none, and would not ask

    return CertifiedBests()
