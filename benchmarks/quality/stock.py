"""The stock step of a case: MetaSchedule tunes it with as many trials, as a person with TVM alone would do it."""

from __future__ import annotations

import json
import shutil
import time
from typing import Any

import tvm

from benchmarks.quality import cells, shared
from benchmarks.quality.cases.case import Case
from benchmarks.quality.conditions import conditions
from benchmarks.quality.plain_tvm import lowered
from benchmarks.quality.service import Service
from benchmarks.quality.settings import Settings
from benchmarks.search.processes import run_module
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.serialization import module_to_json


def tuned(case: Case, settings: Settings, service: Service) -> dict[str, Any]:
    """Tune a case with ``tune_tir``, and return its line. The database is the one that `Shared` names.

    Raises:
        RuntimeError: ``tune_tir`` failed.
    """
    given = shared.of(case, settings.shared)
    with service.client() as client:
        target = next(offer.target for offer in client.targets() if offer.target["kind"] == "llvm")
    functions = dict(prim_funcs(lowered(given, tvm.target.Target(target))))
    module = given.folder / "stock.json"
    module.write_text(module_to_json(tvm.IRModule(functions)))
    shutil.rmtree(given.stock_database, ignore_errors=True)
    started = time.monotonic()
    succeeded = run_module(
        "benchmarks.quality.stock_tuning",
        [str(module), json.dumps(target), str(given.stock_database), str(settings.trials)],
        name=f"stock {case.name}",
        environment=settings.thread_environment,
    )
    if not succeeded:
        shutil.rmtree(given.stock_database, ignore_errors=True)
        raise RuntimeError(f"tune_tir failed for {case.name}")
    return {
        "kind": cells.STOCK,
        "case": case.name,
        "seconds": time.monotonic() - started,
        "trials": settings.trials,
        "conditions": conditions(settings.threads),
    }
