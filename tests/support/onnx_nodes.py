"""ONNX's own tests of operators, and what becomes of them.

``python -m tests.support.onnx_nodes`` renews the results.
"""

from __future__ import annotations

import functools
import importlib
import json
import pkgutil
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import compose, numpy_helper
from onnx.backend.test.case import node
from onnx.backend.test.case.test_case import TestCase
from tvm import relax

from loopwright import frontends
from loopwright.applying.lookup import lower
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.target import target_from
from loopwright.errors import UnsupportedModel

LLVM = target_from("llvm")
RESULTS = Path(__file__).parents[2] / "docs/hooks/operators/onnx.json"
"""By operator: how many of ONNX's tests pass, are refused, and differ."""


class Outcome(StrEnum):
    PASS = "pass"
    REFUSED = "refused"
    DIFFERENT = "different"


@functools.cache
def node_tests() -> dict[str, TestCase]:
    """ONNX's own tests of operators, by name, without those of its functions written out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(node.__path__):
            importlib.import_module(f"{node.__name__}.{module.name}")
    return {case.name: case for case in node._NodeTestCases if "_expanded" not in case.name}


def of_tensors() -> dict[str, TestCase]:
    """Those tests whose inputs and outputs are tensors, and whose operators are those of ONNX itself."""

    def is_tensor(value: Any) -> bool:
        return value is not None and not isinstance(value, list)

    return {
        name: case
        for name, case in node_tests().items()
        if not case.model.graph.node[0].domain and all(is_tensor(value) for each in case.data_sets[0] for value in each)
    }


def operator_of(case: TestCase) -> str:
    """The operator that is tested: nodes before the last one make its inputs."""
    name: str = case.model.graph.node[-1].op_type
    return name


def parameters_fixed(case: TestCase) -> onnx.ModelProto:
    """The model of a test, in which the first input is one, and the others are weights."""
    model, (values, _) = onnx.ModelProto(), case.data_sets[0]
    model.CopyFrom(case.model)
    del model.graph.input[1:]
    for info, value in list(zip(case.model.graph.input, values, strict=True))[1:]:
        weight = onnx.TensorProto()
        weight.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
        weight.name = info.name
        model.graph.initializer.append(weight)
    return model


def taken(case: TestCase) -> onnx.ModelProto:
    """The model of a test; with its parameters as weights, if they must be constants."""
    try:
        frontends.to_program(case.model)
    except UnsupportedModel:
        fixed = parameters_fixed(case)
        frontends.to_program(fixed)
        return fixed
    return case.model


def run(model: onnx.ModelProto, *values: Any) -> list[np.ndarray[Any, Any]]:
    module = lower(frontends.to_program(model), LLVM)
    machine = relax.VirtualMachine(compile_module(module, LLVM), tvm.cpu())
    result = machine["main"](*(tvm.runtime.tensor(np.array(value)) for value in values))
    return [each.numpy() for each in ([result] if isinstance(result, tvm.runtime.Tensor) else result)]


def compare(*cases: TestCase) -> None:
    """Compare the outputs of the models of tests of one opset, which are compiled as one model.

    Raises:
        AssertionError: they differ.
        UnsupportedModel: a model is refused.
    """
    models = [compose.add_prefix(taken(case), f"case{number}_") for number, case in enumerate(cases)]
    graph = onnx.GraphProto(name="all")
    for model in models:
        graph.MergeFrom(model.graph)
    given = [value for case, model in zip(cases, models, strict=True) for value in inputs(case, model)]
    results = iter(run(onnx.helper.make_model(graph, opset_imports=models[0].opset_import, ir_version=10), *given))
    for case in cases:
        for each in case.data_sets[0][1]:
            got, wanted = next(results), _array(each)
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), case.name
            rtol, atol = (1e-2, 1e-2) if got.dtype.name in ("float16", "bfloat16") else (case.rtol, 1e-5)
            np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol, atol, err_msg=case.name)


def inputs(case: TestCase, model: onnx.ModelProto) -> Sequence[Any]:
    values: Sequence[Any] = case.data_sets[0][0]
    return [_array(value) for value in values[: len(model.graph.input)]]


def _array(value: Any) -> np.ndarray[Any, Any]:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def outcome(case: TestCase) -> tuple[Outcome, str]:
    """Return what becomes of a test, and why. Any exception but a refusal counts as a different result."""
    try:
        compare(case)
    except UnsupportedModel as error:
        return Outcome.REFUSED, str(error)
    except Exception as error:
        return Outcome.DIFFERENT, f"{case.name}: {type(error).__name__} {error}"
    return Outcome.PASS, ""


def counts(outcomes: Iterable[tuple[TestCase, Outcome]]) -> dict[str, dict[str, int]]:
    """Return how many tests of each operator have each outcome."""
    result: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(Outcome, 0))
    for case, each in outcomes:
        result[operator_of(case)][each] += 1
    return dict(sorted(result.items()))


def main() -> None:
    outcomes = []
    for name, case in of_tensors().items():
        kind, reason = outcome(case)
        outcomes.append((case, kind))
        if kind is not Outcome.PASS:
            print(f"{kind:10}{name}  {' '.join(reason.split())[:300]}", flush=True)
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in counts(outcomes).items()]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
