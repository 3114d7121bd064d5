"""The space of a GPU has the programs whose shared memory the GPU has, and no others."""

from __future__ import annotations

import pytest
import tvm

from benchmarks.gpu.workloads import product
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from, with_shared_bytes
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace
from tuner.workload import make_workload

GPU = target_from({"kind": "cuda", "arch": "sm_80"})
KIB = 1024


def space(dtype: str, limit_kib: int) -> DesignSpace:
    mod = module_from_json(make_workload(product(512, 512, 512, dtype, "float32"), "product").module_json)
    return builtin_space(mod, with_shared_bytes(GPU, limit_kib * KIB), 1)


def drawn(space: DesignSpace, draws: int) -> list[tvm.IRModule | None]:
    """Return programs with random decisions; None for those that the space refuses."""
    schedules = [space.replay(space.traces[seed % len(space.traces)], seed) for seed in range(1, draws)]
    return [None if schedule is None else schedule.mod for schedule in schedules]


def fits(mod: tvm.IRModule) -> bool:
    """Return whether the build lets the program have its shared memory."""
    try:
        compile_module(mod, GPU)
    except ValueError as error:
        if "bytes of shared memory" not in str(error):
            raise
        return False
    return True


@pytest.mark.whole
def test_tensor_cores_have_the_shared_memory_that_a_kernel_may_ask_for() -> None:
    unlimited, now, declared = (drawn(space("float16", kib), 17) for kib in (1024, 163, 48))
    assert [mod is not None for mod in now] == [mod is not None and fits(mod) for mod in unlimited]
    assert sum(mod is not None for mod in declared) < sum(mod is not None for mod in now)
    assert sum(mod is not None for mod in now) < sum(mod is not None for mod in unlimited)


def test_programs_that_declare_their_shared_memory_are_held_to_what_a_kernel_may_declare() -> None:
    now, declared = (drawn(space("float32", kib), 17) for kib in (163, 48))
    assert [mod is not None for mod in now] == [mod is not None for mod in declared]
    accepted = [mod for mod in now if mod is not None]
    assert len(accepted) > 3
    assert all(map(fits, accepted))
