"""Programs for people, and modules with the best schedules applied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from tests.support import own_intrinsics
from tests.support.tuner_programs import LLVM, add_one, candidate, matmul, mlp
from tuner.codec import encode
from tuner.inspection.rendering import apply, scripts
from tuner.inspection.submission import parse
from tuner.task import extract_tasks


def _apply(mod: tvm.IRModule, traces: dict[str, str | None]) -> dict[str, Any]:
    (answer,) = apply(module_to_json(mod), LLVM, traces)
    fields: dict[str, Any] = encode(answer)
    return fields


def test_before_and_after() -> None:
    (shown,) = scripts(matmul().module_json, candidate(matmul(), seed=1).trace_json, LLVM)
    assert shown.before == matmul().script
    assert "T.parallel" in shown.after
    assert "T.parallel" not in shown.before


def test_a_schedule_with_an_intrinsic_of_our_own_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, named = own_intrinsics.trace(), own_intrinsics.recorded(monkeypatch)
    (shown,) = scripts(module_to_json(own_intrinsics.WORKLOAD), trace, LLVM)
    assert named
    assert shown.trace is not None
    assert all(name in shown.trace for name in named)


def test_the_baseline_stays_as_it_is() -> None:
    (shown,) = scripts(matmul().module_json, None, LLVM)
    assert shown.before == shown.after == matmul().script


def test_schedules_are_applied_to_functions() -> None:
    product = module_from_json(matmul().module_json)["main"].with_attr("global_symbol", "product")
    mod = tvm.IRModule({"product": product, "other": add_one("other")})
    answer = _apply(mod, {matmul().hash: candidate(matmul(), seed=1).trace_json})
    assert (answer["applied"], answer["missed"]) == (["product"], ["other"])
    applied = module_from_json(answer["module_json"])
    assert applied["product"].attrs["global_symbol"] == "product"
    assert applied["product"].attrs["tirx.is_scheduled"]
    assert "T.parallel" in applied["product"].script()
    tvm.ir.assert_structural_equal(applied["other"], mod["other"])
    tvm.compile(applied, target=target_from(LLVM))


def test_a_relax_module_finds_all_that_was_tuned_and_computes_the_same() -> None:
    mod = mlp(2, batch=16, width=16)
    (parsed,) = parse("tvm-json", module_to_json(mod), LLVM, None, None)
    traces: dict[str, str | None] = {task.workload.hash: None for task in parsed.tasks}
    product = next(t for t in extract_tasks(mod, target_from(LLVM)).tasks if "matmul" in t.workload.name).workload
    traces[product.hash] = candidate(product, seed=3).trace_json
    answer = _apply(module_from_json(parsed.module_json), traces)
    assert sorted(answer["applied"]) == sorted(task.workload.name for task in parsed.tasks)
    assert answer["missed"] == []

    rng = np.random.default_rng(0)
    inputs = [tvm.runtime.tensor(rng.standard_normal((16, 16), dtype=np.float32)) for _ in range(3)]

    def run(module: tvm.IRModule) -> np.ndarray[Any, Any]:
        executable = relax.build(module, target_from(LLVM))
        return relax.VirtualMachine(executable, tvm.cpu())["main"](*inputs).numpy()

    np.testing.assert_allclose(run(module_from_json(answer["module_json"])), run(mod), rtol=1e-5)


def test_what_is_not_known_is_missed() -> None:
    answer = _apply(mlp(1), {})
    assert answer["applied"] == []
    assert sorted(answer["missed"]) == ["fused_matmul_relu", "softmax"]
