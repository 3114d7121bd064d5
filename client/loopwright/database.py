"""What the service knows for a target, as a TVM tuning database.

TVM's own databases ignore the target of a query, commit a workload when it is only asked for, and cannot say that
the unscheduled program is the best one. This one holds the certified bests of one target, read-only in effect:
a query looks for the same program whatever it is called, and answers None where there is no schedule to apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule import database as ms

from loopwright.best import Best
from loopwright.codegen.digest import function_digest
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.schedule import new_schedule, replay


@dataclass(frozen=True, slots=True)
class Known:
    """A certified best and the program it is for, as an IRModule with the one function ``main``."""

    best: Best
    module: Any


class Knowledge:
    """The certified bests for one target, found by the digest of a program."""

    def __init__(self, target: Any, known: list[Known]) -> None:
        """Where several device classes answer to the target, the best of a program is its fastest."""
        self.target = target
        self._by_digest: dict[str, Known] = {}
        for entry in sorted(known, key=lambda entry: entry.best.best_us):
            self._by_digest.setdefault(entry.best.workload_hash, entry)

    def find(self, func: Any) -> Known | None:
        """Return what is known of the program that a PrimFunc is, or None."""
        try:
            return self._by_digest.get(function_digest(func))
        except InvalidModule:
            return None  # no workload of the service is nested so deeply

    def all(self) -> list[Known]:
        return list(self._by_digest.values())


def as_database(knowledge: Knowledge) -> Any:
    """A ``tvm.s_tir.meta_schedule.Database`` of what is known for one target.

    It holds one record per program whose best is a schedule; a program that is best left as it is has none, and
    TVM then leaves it as it is. Use it with ``MetaScheduleApplyDatabase``, ``relax.get_pipeline("zero")`` under
    ``with target, database:``, or ``relax_integration.compile_relax``. Plain ``relax.build`` and ``tvm.compile``
    never ask a database. Committing to it raises: results enter through the service.

    Its ``hits`` and ``misses`` are the names of the functions that were asked for, found and not.
    """
    records: dict[str, ms.TuningRecord] = {}
    for known in knowledge.all():
        if known.best.trace is not None:
            records[known.best.workload_hash] = ms.TuningRecord(
                replay(known.module, known.best.trace, knowledge.target).trace,
                ms.Workload(known.module),
                [known.best.best_us * 1e-6],
                knowledge.target,
            )

    def record_of(mod: Any) -> Any:
        funcs = prim_funcs(mod)
        if len(funcs) != 1:
            return None
        known = knowledge.find(funcs[0][1])
        return None if known is None else records.get(known.best.workload_hash)

    def serves(target: Any) -> bool:
        return bool(target.kind.name == knowledge.target.kind.name)

    @derived_object
    class CertifiedBests(ms.PyDatabase):
        def __init__(self) -> None:
            super().__init__()
            self.hits: set[str] = set()
            self.misses: set[str] = set()

        def has_workload(self, mod: Any) -> bool:
            return record_of(mod) is not None

        def commit_workload(self, mod: Any) -> Any:
            record = record_of(mod)
            return ms.Workload(mod) if record is None else record.workload

        def commit_tuning_record(self, record: Any) -> None:
            raise NotImplementedError("this database is read-only: results enter through Client.import_records")

        def get_top_k(self, workload: Any, top_k: int) -> list[Any]:
            record = record_of(workload.mod)
            return [record] if record is not None and top_k > 0 else []

        def get_all_tuning_records(self) -> list[Any]:
            return list(records.values())

        def query_tuning_record(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
            record = record_of(mod) if serves(target) else None
            (self.misses if record is None else self.hits).add(str(workload_name or "main"))
            return record

        def query_schedule(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
            record = self.query_tuning_record(mod, target, workload_name)
            if record is None:
                return None
            schedule = new_schedule(record.workload.mod)
            record.trace.apply_to_schedule(schedule, remove_postproc=False)
            return schedule

        def query_ir_module(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
            schedule = self.query_schedule(mod, target, workload_name)
            return None if schedule is None else schedule.mod

        def __len__(self) -> int:
            return len(records)

    return CertifiedBests()
