"""A kernel that needs more shared memory than its GPU has is refused before it is compiled."""

from __future__ import annotations

import pytest
import tvm

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.target import target_from

KERNEL = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
    S = T.sblock_alloc_buffer(({size},), "float32", scope="{scope}")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        for i, thread in T.grid({size} // 32, 32):
            with T.sblock("S"):
                v = T.axis.spatial({size}, i * 32 + thread)
                S[v] = A[v] * T.float32(2)
        for i in range({size} // 32):
            for thread in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("B"):
                    v = T.axis.spatial({size}, i * 32 + thread)
                    B[v] = S[{size} - 1 - v]
"""


def compiled(kib: int, scope: str, arch: str) -> None:
    """Compile a kernel that has ``kib`` KiB of shared memory."""
    func = tvm.script.from_source(KERNEL.format(size=kib * 256, scope=scope))
    compile_module(tvm.IRModule({"main": func}), target_from({"kind": "cuda", "arch": arch}))


@pytest.mark.parametrize(
    ("kib", "scope", "arch"),
    [(48, "shared", "sm_90"), (99, "shared.dyn", "sm_86"), (163, "shared.dyn", "sm_80"), (227, "shared.dyn", "sm_90a")],
)
def test_a_kernel_may_have_what_the_gpu_has(kib: int, scope: str, arch: str) -> None:
    compiled(kib, scope, arch)


@pytest.mark.parametrize(
    ("kib", "scope", "arch", "message"),
    [
        (49, "shared", "sm_90", "declares 50176 bytes of shared memory, and CUDA allows 49152; .* shared.dyn"),
        (100, "shared.dyn", "sm_86", "needs 102400 bytes .* sm_86 has 101376; use smaller tiles"),
        (164, "shared.dyn", "sm_80", "needs 167936 bytes .* sm_80 has 166912"),
        (228, "shared.dyn", "sm_90a", "needs 233472 bytes .* sm_90a has 232448"),
    ],
)
def test_a_kernel_that_needs_more_is_refused(kib: int, scope: str, arch: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compiled(kib, scope, arch)
