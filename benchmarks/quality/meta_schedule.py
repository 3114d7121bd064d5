"""TVM alone, with stock MetaSchedule's database, built and run as TVM documents it; an engine of the comparison."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program
from tvm.s_tir import meta_schedule as ms

from benchmarks.quality.shared import Shared
from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.comparing.engines.tuned import on_virtual_machine


def variants(shared: Shared, threads: int) -> Iterator[tuple[str, Prepare]]:
    yield "tune_tir", lambda: _prepared(shared)


def _prepared(shared: Shared) -> Prepared:
    database = ms.database.JSONDatabase(work_dir=str(shared.stock_database))
    # The target that was tuned for is the one that the records name.
    target = database.get_all_tuning_records()[0].target
    with target, database:
        module = relax.transform.MetaScheduleApplyDatabase()(lowered(shared, target))
    is_tuned = [bool(func.attrs and "tirx.is_scheduled" in func.attrs) for func in module.functions.values()]
    return on_virtual_machine(tvm.compile(module, target=target), shared, f"{sum(is_tuned)} functions tuned")


def lowered(shared: Shared, target: tvm.target.Target) -> tvm.IRModule:
    """Return the case's module with its normalisations folded, legalised and fused by the pipeline ``zero``."""
    exported = torch.export.export(shared.torch_module(), *shared.torch_inputs())
    module = from_exported_program(exported, unwrap_unit_return_tuple=True)
    passes = [
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.FoldConstant(),
        relax.get_pipeline("zero"),
    ]
    with target:
        return tvm.transform.Sequential(passes)(module)
