"""Models of every kind through a service: symbolic shapes, earlier dialects, weights, effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tvm
from tvm import relax

from loopwright import Client, InvalidRequest, UnsupportedModel
from tests.support.programs import LIBRARY_ONLY, NAMED_CALLS, TUTORIAL
from tests.support.sdk import tuned

SYMBOLIC = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 32), "float32"), w: R.Tensor((32, 16), "float32")):
        with R.dataflow():
            out = R.nn.relu(R.matmul(x, w))
            R.output(out)
        return out
"""


def test_symbolic_shapes_one_and_several(client: Client) -> None:
    refusals: list[Any] = [None, {"m": 4}, []]
    for refused in refusals:
        with pytest.raises(InvalidRequest):
            client.submit(SYMBOLIC, shapes=refused)
    job = tuned(client.submit(SYMBOLIC, shapes=[{"n": 8}, {"n": 24}], max_trials=4, name="symbolic"))
    assert sorted(task.name for task in job.tasks) == ["fused_matmul_relu [n=24]", "fused_matmul_relu [n=8]"]
    generator = np.random.default_rng(0)
    w = generator.standard_normal((32, 16), dtype="float32")
    for n in (8, 24):
        x = generator.standard_normal((n, 32), dtype="float32")
        machine = relax.VirtualMachine(client.compile(SYMBOLIC, shapes={"n": n}), tvm.cpu())
        assert client.last_report is not None
        assert not client.last_report.misses
        got = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w)).numpy()
        np.testing.assert_allclose(got, np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)
        assert f"R.Tensor(({n}, 32)" in job.module(shapes={"n": n}).script()
    with pytest.raises(InvalidRequest, match="symbolic"):
        job.module()


@pytest.mark.whole
def test_a_tutorial_of_an_earlier_version(client: Client) -> None:
    tutorial = TUTORIAL.replace("64", "68")
    job = tuned(client.submit(tutorial, max_trials=4, name="tutorial"))
    assert any("T.block to T.sblock" in note for note in job.info.notes)
    client.apply(tutorial)
    assert client.last_report is not None
    assert not client.last_report.misses


@pytest.mark.whole
def test_a_tutorial_that_calls_its_functions_by_name(client: Client) -> None:
    shapes = {"m": 24, "n": 16, "k": 10}
    with pytest.raises(InvalidRequest, match="k, m, n"):
        client.submit(NAMED_CALLS)
    job = tuned(client.submit(NAMED_CALLS, shapes=shapes, max_trials=4, name="named calls"))
    assert [task.name for task in job.tasks] == ["fused_linear0_m24_n16_relu0", "linear0_m16_n10"]
    generator = np.random.default_rng(0)
    extents = ((1, 24), (16, 24), (16,), (10, 16), (10,))
    x, w0, b0, w1, b1 = (generator.standard_normal(shape, dtype="float32") for shape in extents)
    machine = relax.VirtualMachine(client.compile(NAMED_CALLS, shapes=shapes), tvm.cpu())
    assert client.last_report is not None
    assert not client.last_report.misses
    got = machine["main"](*(tvm.runtime.tensor(value) for value in (x, w0, b0, w1, b1))).numpy()
    np.testing.assert_allclose(got, np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, rtol=1e-4, atol=1e-4)
    assert "call_dps_packed" not in job.module().script()


def test_a_module_with_nothing_to_tune_succeeds_and_compiles(client: Client) -> None:
    job = tuned(client.submit(LIBRARY_ONLY))
    assert (job.name, job.tasks) == ("nothing to tune", [])
    assert "client.compile" in job.info.notes[0]
    assert tuned(job.resubmit()).info.notes == job.info.notes
    assert "tests.double" in job.module().script()
    assert "tests.double" in client.apply(LIBRARY_ONLY).script()

    def double(x: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
        out.copyfrom(x.numpy() * 2)

    tvm.register_global_func("tests.double", double, override=True)
    machine = relax.VirtualMachine(client.compile(LIBRARY_ONLY), tvm.cpu())
    x = np.random.default_rng(0).standard_normal((4, 8), dtype="float32")
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x)).numpy(), x * 2)


def test_printed_constants_are_taken_if_they_come_along(client: Client) -> None:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((2, 24), "float32"))
    weight = np.random.default_rng(0).standard_normal((24, 20), dtype="float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.relu(relax.op.matmul(x, relax.const(weight))))
        builder.emit_func_output(out)
    mod = builder.get()
    for call in (client.submit, client.compile):
        with pytest.raises((InvalidRequest, UnsupportedModel), match="show_meta=True"):
            call(mod.script())
    text = mod.script(show_meta=True)
    tuned(client.submit(text, max_trials=2, name="printed"))
    machine = relax.VirtualMachine(client.compile(text), tvm.cpu())
    assert client.last_report is not None
    assert not client.last_report.misses
    value = np.random.default_rng(1).standard_normal((2, 24), dtype="float32")
    got = machine["main"](tvm.runtime.tensor(value)).numpy()
    np.testing.assert_allclose(got, np.maximum(value @ weight, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.whole
def test_repeated_layers_are_one_task_with_a_weight(client: Client) -> None:
    layers = [module for _ in range(3) for module in (torch.nn.Linear(24, 24), torch.nn.ReLU())]
    model, x = torch.nn.Sequential(*layers).eval(), torch.ones(2, 24)
    job = tuned(client.submit(model, example_inputs=(x,), max_trials=4, name="layers"))
    assert [task.weight for task in job.tasks] == [3]
    records = [client.record(record.id) for record in client.records(job.tasks[0].workload_hash)]
    assert {record.packs_weight for record in records} == {True, False}
    machine = relax.VirtualMachine(client.compile(model, example_inputs=(x,)), tvm.cpu())
    with torch.no_grad():
        torch.testing.assert_close(torch.from_dlpack(machine["main"](tvm.runtime.from_dlpack(x))), model(x))


SIDE_EFFECTS = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def double(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def other(x: R.Tensor((8, 16), "float32")):
        cls = Module
        with R.dataflow():
            out = R.call_tir(cls.double, (x,), out_ty=R.Tensor((8, 16), "float32"))
            R.output(out)
        return out

    @R.function(pure=False)
    def main(x: R.Tensor((8, 16), "float32")):
        cls = Module
        with R.dataflow():
            first = R.call_tir(cls.double, (x,), out_ty=R.Tensor((8, 16), "float32"))
            R.output(first)
        _ = R.print(format="between")
        with R.dataflow():
            second = R.exp(R.call_tir(cls.double, (first,), out_ty=R.Tensor((8, 16), "float32")))
            R.output(second)
        return second
"""


def test_effects_stay_between_their_dataflow_blocks(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    job = tuned(client.submit(SIDE_EFFECTS, max_trials=4, name="effects"))
    assert sum(task.weight for task in job.tasks) == 4
    machine = relax.VirtualMachine(client.compile(SIDE_EFFECTS), tvm.cpu())
    assert client.last_report is not None
    assert not client.last_report.misses
    x = np.random.default_rng(0).standard_normal((8, 16), dtype="float32")
    capfd.readouterr()
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(x)).numpy(), np.exp(4 * x), rtol=1e-5)
    assert capfd.readouterr().out.count("between") == 1
    np.testing.assert_allclose(machine["other"](tvm.runtime.tensor(x)).numpy(), 2 * x)
