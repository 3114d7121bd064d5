"""The stock step of a case: MetaSchedule tunes it with as many trials, as a person with TVM alone would do it."""

from __future__ import annotations

import json
import shutil
from typing import Any

import tvm

from benchmarks import stock
from benchmarks.quality import shared
from benchmarks.quality.cases.case import Case
from benchmarks.quality.meta_schedule import lowered
from benchmarks.quality.service import Service
from benchmarks.quality.settings import Settings
from benchmarks.runner import conditions
from loopwright.codegen.functions import prim_funcs


def tuned(case: Case, settings: Settings, service: Service) -> dict[str, Any]:
    """Tune a case with ``tune_tir``, and return its line. The database is the one that `Shared` names.

    Raises:
        RuntimeError: ``tune_tir`` found nothing.
    """
    given = shared.of(case, settings.shared)
    with service.client() as client:
        target = next(offer.target for offer in client.targets() if offer.target["kind"] == "llvm")
    functions = dict(prim_funcs(lowered(given, tvm.target.Target(target))))
    shutil.rmtree(given.stock_database, ignore_errors=True)
    found = stock.tuned(
        tvm.IRModule(functions),
        json.dumps(target),
        trials=settings.trials,
        seed=1,
        work_dir=given.stock_database,
        environment=settings.thread_environment,
    )
    if not found.progress:
        shutil.rmtree(given.stock_database, ignore_errors=True)
        raise RuntimeError(f"tune_tir found nothing for {case.name}")
    noted = {"seconds": found.seconds, "trials": settings.trials, "conditions": conditions(settings.threads)}
    return {"kind": "stock", "case": case.name, **noted}
