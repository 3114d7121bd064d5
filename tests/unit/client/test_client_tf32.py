"""Models that may use TF32: what is looked up and built for them, and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest
import tvm

import loopwright
from benchmarks.gpu.workloads import product
from loopwright.codegen.errors import InvalidTarget
from loopwright.codegen.functions import as_module
from loopwright.codegen.gpu.tf32 import with_tf32
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.serialization import trace_to_list
from loopwright.codegen.target import target_from
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import LLVM, serve, two_layers
from tuner.space.builtin import builtin_space

AMPERE = {"kind": "cuda", "arch": "sm_80"}


@pytest.fixture(scope="module")
def func() -> tvm.tirx.PrimFunc:
    return product(256, 256, 256, "float32", "float32")


@pytest.fixture(scope="module")
def best(func: tvm.tirx.PrimFunc) -> dict[str, Any]:
    """Return a best with TF32, as the service stores it: of the workload that permits it."""
    target = target_from(AMPERE)
    [lowered] = lower(with_tf32(as_module(func)), target).functions.values()
    mod = normal_form(lowered)
    space = builtin_space(mod, target, 1)
    accepted = filter(None, (space.replay(space.traces[0], seed) for seed in range(1, 200)))
    trace = trace_to_list(next(accepted).trace)
    return best_json(function_digest(mod["main"]), trace, target=AMPERE, math="tf32")


def test_with_tf32_the_best_is_found_built_and_named(
    service: FakeService, client: loopwright.Client, func: tvm.tirx.PrimFunc, best: dict[str, Any]
) -> None:
    serve(service, best, auto=AMPERE)
    for target in (AMPERE, "auto"):
        built = client.compile(func, target, math="tf32")
        assert "loopwright_tf32_multiply" in built.imports[0].inspect_source()
        assert ", in TF32" in str(client.last_report)
    found = client.best(func, AMPERE, math="tf32")
    assert found is not None
    assert found.math == "tf32"


def test_without_it_nothing_of_tf32_is_found(
    service: FakeService, client: loopwright.Client, func: tvm.tirx.PrimFunc, best: dict[str, Any]
) -> None:
    serve(service, best, auto=AMPERE)
    assert client.best(func, AMPERE) is None
    assert "tf32" not in client.compile(func, AMPERE).imports[0].inspect_source()


def test_a_models_products_are_asked_for_as_those_that_permit_it(
    service: FakeService, client: loopwright.Client
) -> None:
    serve(service, auto=AMPERE)
    client.apply(two_layers(), AMPERE)
    client.apply(two_layers(), AMPERE, math="tf32")
    exact, permitting = (set(request.json()["functions"]) for request in service.requests)
    assert len(exact) == len(permitting)
    assert exact.isdisjoint(permitting)


@pytest.mark.parametrize("target", [LLVM, "auto"])
def test_a_target_without_tf32_is_refused(service: FakeService, client: loopwright.Client, target: Any) -> None:
    serve(service)
    with pytest.raises(InvalidTarget, match=r"tf32.*cuda"):
        client.apply(two_layers(), target, math="tf32")
