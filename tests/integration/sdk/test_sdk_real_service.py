"""What users ask of a service whose fleet measures: one real job of each kind."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax, te
from tvm.s_tir import Schedule

import loopwright.torch
from loopwright import Client, Job
from loopwright.torch import variant
from tests.integration.sdk.test_cli import Cli
from tests.integration.sdk.test_sdk_check import saved
from tests.support.perceptron import PERCEPTRON, inputs, scores
from tests.support.programs import product_relu
from tests.support.sdk import tuned
from tests.support.service import Service


@pytest.fixture(scope="module")
def client(real_service: Service) -> Iterator[Client]:
    with Client(real_service.url, real_service.token) as connected:
        yield connected


@pytest.fixture(scope="module")
def model(client: Client) -> Job:
    return tuned(client.submit(PERCEPTRON, max_trials=16, name="perceptron"))


@pytest.mark.whole
def test_bests_are_certified_timed_as_one_model_and_compiled(client: Client, model: Job) -> None:
    assert any(task.speedup is not None and task.speedup > 1 for task in model.tasks)
    for task in model.tasks:
        record = client.record(task.record_id or "")
        assert record.certificate is not None
        assert record.certificate.max_abs_error <= record.certificate.atol + record.certificate.rtol * 1e3
        assert record.certificate.conditions is not None
        assert record.median_us == pytest.approx(np.median(record.run_secs) * 1e6)
    states = {trial.state for trial in model.trials()}
    assert "measured" in states <= {"measured", "failed"}
    assert model.model is not None
    assert model.model.measured_us is not None, model.info.notes
    assert any(note.startswith("the search took ") for note in model.info.notes)
    # The same functions, called by a virtual machine on a machine that others use.
    assert 0.2 * model.model.best_us < model.model.measured_us < 100 * model.model.best_us
    values = inputs()
    machine = relax.VirtualMachine(client.compile(PERCEPTRON), tvm.cpu())
    assert client.last_report is not None
    assert client.last_report.misses == ()
    got = machine["main"](*(tvm.runtime.tensor(value) for value in values.values()))
    np.testing.assert_allclose(got.numpy(), scores(**values), rtol=1e-3, atol=1e-3)


@pytest.mark.whole
def test_a_best_is_raced_anew(client: Client, model: Job) -> None:
    workload = model.tasks[0].workload_hash
    best = client.best(workload)
    assert best is not None
    job = client.recheck([workload]).wait(progress=False)
    assert job.state == "succeeded"
    [found] = job.rechecks()
    assert found.result is not None
    assert found.result.rounds >= 3
    assert found.result.conditions == best.certificate.conditions
    assert found.result.best_us == pytest.approx(best.best_us, rel=2)
    assert [event.type for event in job.events()].count("recheck") == 1
    again = client.best(workload)
    assert again is not None
    assert again.certificate.checked_at is not None


@pytest.mark.whole
def test_a_search_takes_up_what_is_known(model: Job) -> None:
    """With ``force`` the best that is known takes part again, so that a short search does not lose it."""
    again = tuned(model.resubmit(max_trials=4, force=True))
    assert "transfer" in {trial.origin for trial in again.trials()}


@pytest.mark.whole
def test_a_slower_model_fails_its_check(client: Client, real_service: Service, tmp_path: Path) -> None:
    saved(tmp_path / "model.pt2", 32)
    saved(tmp_path / "larger.pt2", 2048)
    cli = Cli(tmp_path, real_service)
    done = cli("check", "model.pt2", "--record", "reference.json", "--max-trials", "8", "--name", "the reference")
    assert done.status == 0, done.err
    words = ["check", "larger.pt2", "--against", "the reference", "--max-slowdown", "10%", "--max-trials", "8"]
    done = cli(*words, "--junit", "junit.xml", "--summary", "summary.md", "--name", "larger")
    assert done.status == 1, done.err
    suite = xml.parse(tmp_path / "junit.xml").getroot()
    assert int(suite.attrib["failures"]) == 1
    assert [case.attrib["name"] for case in suite if case.find("failure") is not None] == ["the whole model"]
    assert len(suite) == int(suite.attrib["tests"]) == 3
    summary = (tmp_path / "summary.md").read_text()
    assert "regression" in summary.splitlines()[0]
    assert summary.count("\n|") == 4


@pytest.mark.whole
def test_a_portfolio_of_shapes_is_tuned_in_one_job_and_runs_at_every_extent(
    client: Client, real_service: Service, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(96, 64), nn.ReLU()).eval()
    sizes = ({0: torch.export.Dim("n", min=2, max=512)},)
    program = torch.export.export(model, (torch.rand(4, 96),), dynamic_shapes=sizes)
    shapes = {"n": {8: 50, 64: 50}}
    job = tuned(client.submit(program, shapes=shapes, max_trials=24))
    assert [task.name.rpartition(" ")[2] for task in job.tasks] == ["[n=8]", "[n=64]"]
    built = client.compile(program, shapes=shapes)
    report = client.last_report
    assert report is not None
    assert report.misses == ()
    assert [each.extent for each in report.served] == [8, 64]
    largest = report.served[1]
    assert largest.smallest is not None
    assert largest.smallest < largest.extent, "a product of 64 rows is tuned well enough for fewer rows"
    machine = relax.VirtualMachine(built, tvm.cpu())
    for extent in (1, 5, 8, 9, largest.smallest, 63, 64, 65):
        x = torch.rand(extent, 96)
        found = torch.from_dlpack(machine["main"](tvm.runtime.from_dlpack(x)))
        torch.testing.assert_close(found, model(x).detach(), rtol=1e-3, atol=1e-3)
    torch.export.save(program, tmp_path / "net.pt2")
    [name] = {str(symbol) for node in program.graph.find_nodes(op="placeholder") for symbol in _symbols(node)}
    cli = Cli(tmp_path, real_service)
    done = cli("schedule", "compile", "net.pt2", "-o", "net.so", "--shape", f"{name}=8:50,64:50")
    assert done.status == 0, done.err
    assert (tmp_path / "net.so").exists()


def _symbols(node: torch.fx.Node) -> list[torch.SymInt]:
    value = node.meta.get("val")
    return [extent for extent in getattr(value, "shape", ()) if isinstance(extent, torch.SymInt)]


@pytest.mark.whole
def test_torch_compile_tunes_and_uses_what_it_found(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant, "_is_better", lambda now, was: True)
    torch._dynamo.reset()
    loopwright.torch._graphs.clear()
    model, x = nn.Linear(20, 12), torch.randn(4, 20)
    options = {"client": client, "tune": "wait", "max_trials": 4}
    with torch.no_grad():
        compiled = torch.compile(model, backend="loopwright", options=options)
        for _ in range(2):  # the second call takes up what the first has found
            torch.testing.assert_close(compiled(x), model(x))
    [outcome] = loopwright.torch.outcomes()
    assert outcome.state == "compiled"
    assert all(task.certified for task in client.job(outcome.job_id or "").tasks)
    torch._dynamo.reset()


def product(dtype: str, accumulator: str) -> list[te.Tensor]:
    a, b = (te.placeholder((32, 32), dtype, name) for name in "AB")
    k = te.reduce_axis((0, 32), "k")
    compute = lambda i, j: te.sum(a[i, k].astype(accumulator) * b[k, j].astype(accumulator), axis=k)  # noqa: E731
    return [a, b, te.compute((32, 32), compute, "C")]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32"), ("float32", "float32")],
)
def test_element_types(client: Client, dtype: str, accumulator: str) -> None:
    job = tuned(client.submit(product(dtype, accumulator), max_trials=2, name=f"product of {dtype}"))
    assert len(job.tasks) == 1


@pytest.mark.whole
def test_a_space_that_moves_blocks(client: Client) -> None:
    def schedule(sch: Schedule) -> None:
        product, relu = sch.get_sblock("Y"), sch.get_sblock("C")
        i, j, k = sch.get_loops(product)
        i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
        k0, k1 = sch.split(k, sch.sample_perfect_tile(k, n=2))
        sch.reorder(i0, k0, i1, k1, j)
        sch.reverse_compute_at(relu, i0)
        zeroed = sch.decompose_reduction(product, k0)
        sch.vectorize(sch.get_loops(zeroed)[-1])
        copied = sch.cache_read(product, 1, "global")
        sch.compute_at(copied, sch.sample_compute_location(copied))
        sch.annotate(i0, "pragma_auto_unroll_max_step", sch.sample_categorical([0, 64], [0.5, 0.5]))

    job = tuned(client.submit(product_relu(52), space=schedule, max_trials=20, name="own space"))
    origins = {trial.origin for trial in job.trials()}
    assert {"random", "mutation"} <= origins
    assert len({record.id for record in client.records(job.tasks[0].workload_hash)}) >= 12
