"""A case as TVM alone lowers it, by its own importer and passes."""

from __future__ import annotations

import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

from benchmarks.quality.shared import Shared


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
