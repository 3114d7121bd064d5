"""What docs/coming-from/autotvm.md says of Python APIs that are gone: the old ones fail, and today's are run."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from tvm import relax, te, topi
from tvm.relax.frontend.torch import from_exported_program

import loopwright
from tests.unit.client.fake_service import FakeService, job_json
from tests.unit.client.known_bests import serve
from tests.unit.docs.documents import ROOT, inline, table

REGISTERED = "env.relu"
DOCUMENT = ROOT / "docs" / "coming-from" / "autotvm.md"
WITH_TVM, WITH_LOOPWRIGHT = table(DOCUMENT, "earlier TVM"), table(DOCUMENT, "tutorial")


@functools.cache
def names() -> dict[str, Any]:
    """What the documented lines refer to, and do not change."""
    a, x = np.ones((4, 4), dtype="float32"), torch.ones(1, 4)
    model = torch.nn.Linear(4, 2).eval()
    mod = from_exported_program(torch.export.export(model, (x,)), keep_params_as_input=True)
    data = te.placeholder((4, 4), "float32", "data")
    params = {
        str(param.name): np.ones([int(extent) for extent in param.ty.shape], dtype="float32")
        for param in mod["main"].params[1:]
    }
    return {
        **{"np": np, "torch": torch, "tvm": tvm, "relax": relax, "from_exported_program": from_exported_program},
        **{"a": a, "x": x, "t": tvm.runtime.tensor(a), "f": lambda *_: None, "model": model, "mod": mod},
        **{name: relax.Var(name, relax.TensorType((4, 4), "float32")) for name in "AB"},
        "params": params,
        "func": te.create_prim_func([data, topi.nn.relu(data)]),
        "executable": tvm.compile(mod, target="llvm"),
    }


@pytest.fixture(autouse=True)
def _unregistered() -> Iterator[None]:
    """No function by the name that the table registers; afterwards the one that was there."""
    before = tvm_ffi.get_global_func(REGISTERED, allow_missing=True)
    if before is not None:
        tvm_ffi.registry.remove_global_func(REGISTERED)
    yield
    if before is not None:
        tvm_ffi.register_global_func(REGISTERED, before, override=True)


@pytest.mark.parametrize(("there", "here"), WITH_TVM, ids=[there for there, _ in WITH_TVM])
def test_a_line_of_an_old_tutorial_has_an_equivalent(there: str, here: str) -> None:
    [old], [new] = inline(there), inline(here)
    with pytest.raises((AttributeError, NameError, TypeError)):
        eval(old, dict(names()))
    assert eval(new, dict(names())) is not None


@pytest.mark.parametrize(("there", "here"), WITH_LOOPWRIGHT, ids=[there for there, _ in WITH_LOOPWRIGHT])
def test_a_step_of_an_old_tutorial_is_a_call(
    there: str, here: str, client: loopwright.Client, service: FakeService
) -> None:
    serve(service)
    service.on("POST", "/api/v1/jobs", job_json("queued"))
    [old], [new] = inline(there), inline(here)
    with pytest.raises((AttributeError, NameError)):
        eval(old, dict(names()))
    assert eval(new, names() | {"client": client}) is not None


def test_the_apis_that_tutorials_use_have_a_line_each() -> None:
    documented = " ".join(there for there, _ in WITH_TVM)
    for api in ("DynTensorType", "relax.vm.build", "tvm.nd.array", "relay.build", "jit.trace"):
        assert api in documented
