"""What a scheduled program became, for people to read. Runs in a disposable child."""

from __future__ import annotations

from collections.abc import Iterator

import tvm
from tvm.target import Target

from tuner import ir
from workers import cuda


def assembly(module_json: str, trace_json: str | None, target_json: str) -> Iterator[dict[str, str]]:
    """Yield ``{"language": "asm" | "cuda", "text"}`` of a workload with a trace applied (None: the baseline).

    For cuda it is the source of the kernels: a machine without the CUDA toolkit cannot go further.
    """
    target = ir.target_from(target_json)
    mod = ir.module_from_json(module_json)
    on_cuda = target.kind.name == "cuda"
    if trace_json is not None:
        ir.load_intrinsics(target)
        mod = ir.apply_trace_json(mod, trace_json).mod
    elif on_cuda:
        mod = cuda.default_schedule(mod, target)
    if on_cuda:
        yield {"language": "cuda", "text": cuda.source(mod, target)}
    else:
        yield {"language": "asm", "text": str(tvm.compile(mod, target=Target(target)).mod.inspect_source("asm"))}
