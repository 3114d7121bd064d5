"""A matrix product and a relu, given as TVMScript, as tensor expressions, and with a design space of one's own.

.venv/bin/python -m examples.mm_relu
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import te

import loopwright

N = 128

TVMSCRIPT = f"""
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer(({N}, {N})), B: T.Buffer(({N}, {N})), C: T.Buffer(({N}, {N}))):
        Y = T.sblock_alloc_buffer(({N}, {N}))
        for i, j, k in T.grid({N}, {N}, {N}):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid({N}, {N}):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def tensor_expressions() -> list[te.Tensor]:
    """The same computation as inputs and output of `te.compute`."""
    a, b = (te.placeholder((N, N), "float32", name) for name in "AB")
    k = te.reduce_axis((0, N), "k")
    y = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "Y")
    c = te.compute((N, N), lambda i, j: te.max(y[i, j], 0.0), "C")
    return [a, b, c]


def stochastic_schedule(sch: tvm.s_tir.Schedule) -> None:
    """A space of one's own: whatever is sampled here is what the search varies. It runs here and travels as a trace."""
    y, c = sch.get_sblock("Y"), sch.get_sblock("C")
    i, j, k = sch.get_loops(y)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=16))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2, max_innermost_factor=64))
    k0, k1 = sch.split(k, sch.sample_perfect_tile(k, n=2, max_innermost_factor=16))
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.reverse_compute_at(c, j0)
    sch.vectorize(j1)
    sch.parallel(i0)
    sch.decompose_reduction(y, k0)
    unroll = sch.sample_categorical([0, 16, 64], [0.3, 0.4, 0.3])
    sch.annotate(i0, "pragma_auto_unroll_max_step", unroll)


def check(client: loopwright.Client, model: Any) -> None:
    """The compiled function computes what NumPy computes."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((N, N), dtype="float32") for _ in range(2))
    c = tvm.runtime.empty((N, N), "float32")
    client.compile(model)["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def main(client: loopwright.Client, trials: int = 64) -> None:
    print(loopwright.explain(stochastic_schedule, TVMSCRIPT))
    for name, model, space in (
        ("TVMScript", TVMSCRIPT, None),
        ("tensor expressions", tensor_expressions(), None),
        ("own space", TVMSCRIPT, stochastic_schedule),
    ):
        job = client.submit(model, max_trials=trials, space=space, name=f"mm_relu, {name}").wait()
        (task,) = job.tasks
        assert job.state == "succeeded", job.error
        print(f"{name}: {task.baseline_us:.1f} µs before, {task.best_us:.1f} µs now")
        check(client, model)


if __name__ == "__main__":
    main(loopwright.Client())
