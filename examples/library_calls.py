"""A module that mixes functions of its own with calls of a library: its own are tuned, the library's are left alone.

.venv/bin/python -m examples.library_calls
"""

from __future__ import annotations

import numpy as np
import torch
import tvm
from tvm import relax

import loopwright

MIXED = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def linear0(
        X: T.Buffer((1, 784), "float32"),
        W: T.Buffer((128, 784), "float32"),
        B: T.Buffer((128,), "float32"),
        Z: T.Buffer((1, 128), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        Y = T.sblock_alloc_buffer((1, 128), "float32")
        for i, j, k in T.grid(1, 128, 784):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 128):
            with T.sblock("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.linear0, (x, w0, b0), out_ty=R.Tensor((1, 128), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), out_ty=R.Tensor((1, 128), "float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), out_ty=R.Tensor((1, 10), "float32"))
            R.output(out)
        return out
"""


@tvm.register_global_func("env.linear", override=True)
def linear(x: tvm.runtime.Tensor, w: tvm.runtime.Tensor, b: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    """PyTorch's product, on TVM's memory."""
    x_, w_, b_, out_ = (torch.from_dlpack(tensor) for tensor in (x, w, b, out))
    torch.add(x_ @ w_.T, b_, out=out_)


@tvm.register_global_func("env.relu", override=True)
def relu(x: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    torch.clamp_min(torch.from_dlpack(x), 0, out=torch.from_dlpack(out))


def main(client: loopwright.Client, trials: int = 64) -> None:
    job = client.submit(MIXED, max_trials=trials, name="product and PyTorch").wait()
    assert job.state == "succeeded", job.error
    print(*job.info.notes, sep="\n")  # env.linear and env.relu are called as they are
    print([task.name for task in job.tasks])  # linear0 is tuned

    generator = np.random.default_rng(0)
    shapes = ((1, 784), (128, 784), (128,), (10, 128), (10,))
    x, w0, b0, w1, b1 = (generator.standard_normal(shape, dtype="float32") for shape in shapes)
    machine = relax.VirtualMachine(client.compile(MIXED), tvm.cpu())
    got = machine["main"](*(tvm.runtime.tensor(value) for value in (x, w0, b0, w1, b1)))
    np.testing.assert_allclose(got.numpy(), np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    main(loopwright.Client())
