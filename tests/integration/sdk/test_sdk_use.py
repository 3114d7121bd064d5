"""Tuned schedules reach programs: best, apply, compile, database, records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.s_tir.meta_schedule.database import JSONDatabase
from tvm.s_tir.meta_schedule.relax_integration import compile_relax
from tvm_ffi import structural_equal

from loopwright import Client, Job, frontends
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.target import target_from
from loopwright.frontends.tvmscript import module_from_script
from loopwright.results.tables import called
from tests.support.perceptron import PERCEPTRON, inputs, scores
from tests.support.programs import MM_RELU, RENAMED


def run_product(built: Any, name: str) -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((64, 64), dtype="float32") for _ in range(2))
    out = tvm.runtime.tensor(np.full((64, 64), np.nan, dtype="float32"))
    built[name](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def run_perceptron(built: Any, *names: str) -> None:
    """``names``: the arguments that are not bound."""
    values = inputs()
    machine = relax.VirtualMachine(built, tvm.cpu())
    got = machine["main"](*(tvm.runtime.tensor(values[name]) for name in names or values))
    np.testing.assert_allclose(got.numpy(), scores(**values), rtol=1e-3, atol=1e-3)


def is_fast_code(script: str) -> bool:
    return "T.parallel" in script or "T.vectorized" in script


def test_the_best_is_found_by_program_and_by_hash(client: Client, product: Job) -> None:
    [task] = product.tasks
    best = client.best(RENAMED)
    assert best is not None
    by_hash = client.best(task.workload_hash, "auto")
    assert by_hash is not None
    assert by_hash.source == task.source
    assert best == by_hash.model_copy(update={"source": None}), "a program is looked up for all of its users alike"
    assert not best.is_baseline
    assert best.speedup > 1
    assert best.certificate.speedup == best.speedup
    assert best.best_us < best.baseline_us
    assert best.workload_hash in [known.workload_hash for known in client.bests()]
    assert client.best(MM_RELU.replace("64", "16")) is None


def test_a_job_has_its_bests(client: Client, product: Job, perceptron: Job) -> None:
    assert product.best == client.best(product.tasks[0].workload_hash)
    assert [best.workload_hash for best in perceptron.bests()] == [task.workload_hash for task in perceptron.tasks]
    with pytest.raises(ValueError, match=r"has 2 functions; use bests\(\)"):
        _ = perceptron.best
    frame = product.trials().to_pandas()
    assert list(frame["number"]) == list(range(len(frame)))
    assert set(frame["predicted_by"][1:]) == {"ranking"}


def test_two_jobs_are_compared_by_function(product: Job, perceptron: Job) -> None:
    diff = product.diff(perceptron)
    assert diff.comparable
    assert {row.task for row in diff.rows} == {called(task) for task in (*product.tasks, *perceptron.tasks)}
    assert all(row.speedup is None for row in diff.rows), "they have no function in common"
    same = perceptron.diff(perceptron)
    assert [row.speedup for row in same.rows] == [1.0, 1.0]
    assert "left / right of one run of the model: 1.0x" in same.caption
    assert list(same.to_pandas().columns) == ["task", "workload_hash", "left_us", "right_us", "speedup"]


def test_apply_gives_the_best_program(client: Client, product: Job) -> None:
    best = client.best(MM_RELU)
    assert best is not None
    applied = client.apply(MM_RELU)
    assert is_fast_code(applied.script())
    assert client.last_report is not None
    assert [(found.name, found.outcome) for found in client.last_report.functions] == [("main", "tuned")]
    # Exactly what was measured and certified.
    certified = module_from_script(client.record(best.record_id).script_after)
    assert structural_equal(applied["main"].body, certified["main"].body, map_free_vars=True)


def test_compiled_code_holds_the_schedule(client: Client, product: Job) -> None:
    script = client.apply(RENAMED).script()
    built = client.compile(RENAMED)
    run_product(built, "mm_relu")
    plain = tvm.compile(frontends.to_program(RENAMED).module, target=target_from(product.info.target)).mod
    code = built.inspect_source("ll")
    assert code != plain.inspect_source("ll")
    assert ("TVMBackendParallelLaunch" in code) == ("T.parallel" in script)


def test_a_relax_model_is_compiled_from_its_bests(client: Client, perceptron: Job) -> None:
    applied = client.apply(PERCEPTRON)
    assert client.last_report is not None
    assert client.last_report.misses == ()
    assert {hit.name for hit in client.last_report.hits} == {task.name for task in perceptron.tasks}
    tuned = [hit.name for hit in client.last_report.hits if hit.outcome == "tuned"]
    assert tuned
    assert all(is_fast_code(applied[name].script()) for name in tuned)

    run_perceptron(client.compile(PERCEPTRON))
    weights = {name: tvm.runtime.tensor(value) for name, value in inputs().items() if name != "x"}
    run_perceptron(client.compile(PERCEPTRON, params=weights), "x")
    assert client.last_report.misses == ()


def test_what_is_not_known_is_said_and_still_built(
    client: Client, perceptron: Job, caplog: pytest.LogCaptureFixture
) -> None:
    other = PERCEPTRON.replace("1, 10", "1, 12").replace("128, 10", "128, 12").replace("(10,)", "(12,)")
    built = client.compile(other)
    assert isinstance(built, relax.VMExecutable)
    assert client.last_report is not None
    assert [len(client.last_report.hits), len(client.last_report.misses)] == [1, 1]
    assert "1 of 2" in caplog.text


def test_tvm_picks_up_the_database_by_itself(client: Client, perceptron: Job) -> None:
    target = target_from(perceptron.info.target)
    database = client.database("auto")
    mod = frontends.to_program(PERCEPTRON).module
    with target, database:
        lowered = relax.get_pipeline("zero")(mod)
    scheduled = {str(var.name_hint) for var, func in prim_funcs(lowered) if func.attrs.get("tirx.is_scheduled", False)}
    # TVM lowers relu to another function, which loses NaN.
    tuned = {task.name for task in perceptron.tasks if (task.speedup or 0) > 1 and "relu" not in task.name}
    assert tuned
    assert tuned <= scheduled
    assert is_fast_code(lowered.script())
    run_perceptron(compile_relax(database, mod, target, None))


def test_the_service_applies_what_the_client_applies(client: Client, perceptron: Job) -> None:
    theirs, ours = perceptron.module(), client.apply(PERCEPTRON)
    for task in perceptron.tasks:
        assert structural_equal(theirs[task.name].body, ours[task.name].body, map_free_vars=True), task.name


def test_records_are_listed_fastest_first(client: Client, product: Job) -> None:
    [task] = product.tasks
    listed = list(client.records(task.workload_hash, target="auto"))
    assert {record.workload_hash for record in listed} == {task.workload_hash}
    medians = [record.median_us for record in listed]
    assert medians == sorted(medians)
    measured = {trial.id for trial in product.trials() if trial.state == "measured"}
    assert measured <= {record.id for record in listed} <= {record.id for record in client.records()}

    [certified] = [record for record in listed if record.id == task.record_id]
    assert certified.certified
    detail = client.record(certified.id)
    assert detail.median_us == pytest.approx(np.median(detail.run_secs) * 1e6)
    assert detail.certificate is not None
    assert detail.certificate.max_abs_error <= detail.certificate.atol + detail.certificate.rtol * 1e3
    assert is_fast_code(detail.script_after)
    assert not is_fast_code(detail.script_before)


def test_records_travel_as_tvms_json_pair(client: Client, product: Job, perceptron: Job, tmp_path: Path) -> None:
    folder = client.export_records(tmp_path / "records")
    pair = JSONDatabase(str(folder / "database_workload.json"), str(folder / "database_tuning_record.json"))
    target = target_from(product.info.target)
    found = pair.query_tuning_record(normal_form(frontends.to_program(MM_RELU).module["main"]), target, "main")
    assert found is not None
    best = client.best(MM_RELU)
    assert best is not None
    assert np.median([float(seconds) for seconds in found.run_secs]) * 1e6 == pytest.approx(best.best_us)

    first = client.import_records(folder)
    again = client.import_records(folder)
    assert first.errors == again.errors == []
    assert again.workloads == first.workloads == len((folder / "database_workload.json").read_text().splitlines())
    assert (again.imported, again.duplicates) == (0, first.imported + first.duplicates)
    assert again.duplicates >= len(product.tasks) + len(perceptron.tasks)
    # What comes from files is not proven on this machine: it does not become a best.
    assert client.best(MM_RELU) == best
    with pytest.raises(FileNotFoundError):
        client.import_records(tmp_path)
