"""The cases of the comparison with rivals: what they are, and that each of them runs and can be submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from _pytest.mark import ParameterSet
from onnx import TensorProto

from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Kind, Precision
from benchmarks.quality.export import export
from benchmarks.quality.shared import Shared, of
from loopwright import frontends
from loopwright.comparing.case import NoForm, as_arrays
from loopwright.comparing.child import choose, prepare
from loopwright.comparing.engines import PYTORCH
from loopwright.model import Model

ONE_A_FAMILY = {case.family: case for case in CASES.values() if case.kind is Kind.OPERATOR}.values()
QUICK = {case.name for case in list(ONE_A_FAMILY)[::5]} | {"int8-512"}


FEW_BITS = {
    "int8 product": 8,
    "int8 convolution": 4,
    "int4 weights, int8 rows": 8,
    "int4 weights": 2,
    "one row": 3,
    "decode attention": 4,
    "MobileNetV2, half its blocks, QDQ": 1,
    "BERT-base, 2 layers, QDQ": 1,
    "BERT-base, 2 layers, dynamic int8": 1,
}


def some(cases: Iterable[Case]) -> list[ParameterSet]:
    """Return all cases, of which the round runs a few."""
    return [pytest.param(case, marks=() if case.name in QUICK else pytest.mark.whole, id=case.name) for case in cases]


def written(case: Case, folder: Path) -> Shared:
    """Write what engines are given, but for the exported graphs."""
    shared = of(case, folder)
    shared.folder.mkdir()
    module, inputs = case.module(), case.inputs()
    torch.save(module.state_dict(), shared.folder / "weights.pt")
    np.savez(shared.folder / "inputs.npz", *as_arrays(inputs))
    with torch.no_grad():
        np.save(shared.folder / "reference.npy", as_arrays(module(*inputs))[0])
    return shared


def test_the_cases_cover_what_is_promised() -> None:
    kinds = [case.kind for case in CASES.values()]
    assert kinds.count(Kind.OPERATOR) >= 45
    assert kinds.count(Kind.MODEL) >= 5
    families = [case.family for case in CASES.values()]
    assert {family: families.count(family) for family in FEW_BITS} == FEW_BITS
    assert sum(case.with_stock for case in CASES.values()) >= 4


@pytest.mark.parametrize("case", some(CASES.values()))
def test_a_module_is_the_same_each_time_untrained_and_computes_numbers_that_differ(case: Case) -> None:
    first, second = case.module(), case.module()
    assert not first.training
    assert not any(parameter.requires_grad for parameter in first.parameters())
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key
    assert all(torch.equal(one, other) for one, other in zip(case.inputs(), case.inputs(), strict=True))
    with torch.no_grad():
        output = first(*case.inputs()).float()
    assert torch.isfinite(output).all()
    assert output.std() > 0


@pytest.mark.parametrize("case", some(ONE_A_FAMILY))
def test_an_operator_of_each_family_can_be_submitted(case: Case) -> None:
    program = frontends.to_program(Model(case.module(), example_inputs=case.inputs()))
    assert program.module.get_global_vars()


def test_eager_pytorch_is_prepared_in_both_formats_and_the_faster_one_counts(tmp_path: Path) -> None:
    shared = written(CASES["conv3x3-stride-odd"], tmp_path)
    answer, ready = prepare(PYTORCH.module, ["torch"], shared, 1, None)
    assert set(answer.variants) == {"contiguous", "channels_last"}
    assert all(variant.error <= shared.tolerance for variant in answer.variants.values())
    choice = choose({name: lambda: None for name in ready})
    assert choice.variant in ready
    assert set(choice.latencies) == set(ready)


def test_a_wrong_output_is_a_failure(tmp_path: Path) -> None:
    shared = written(CASES["softmax-odd"], tmp_path)
    np.save(shared.folder / "reference.npy", shared.expected[0] + 1)
    answer, ready = prepare(PYTORCH.module, ["torch"], of(CASES["softmax-odd"], tmp_path), 1, "contiguous")
    assert not ready
    assert "differs from the reference" in answer.failures["contiguous"]


def test_an_integer_product_is_submitted_with_its_weight_as_a_constant(tmp_path: Path) -> None:
    model, _ = written(CASES["int8-512"], tmp_path).program()
    detached = frontends.to_program(model)
    assert [tuple(weight.shape) for weight in detached.weights.values()] == [(512, 512)]


@pytest.mark.whole
@pytest.mark.parametrize("precision", [Precision.QDQ_MODEL, Precision.DYNAMIC])
def test_a_quantised_model_has_two_forms_that_compute_the_same(precision: Precision, tmp_path: Path) -> None:
    case = replace(CASES["mlp"], precision=precision)
    export(case, tmp_path)
    shared = of(case, tmp_path)
    results, stored = [], []
    for path in shared.graphs.values():
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        results.append(session.run(None, {session.get_inputs()[0].name: shared.inputs[0]})[0])
        stored.append({each.data_type for each in onnx.load(path).graph.initializer if len(each.dims) == 2})
    assert [TensorProto.UINT8 in each for each in stored] == [False, True]
    with torch.no_grad():
        numbers = case.module()(*case.inputs()).numpy()
    limit = case.tolerance * np.abs(numbers).max()
    for result in (results[-1], *shared.expected):
        np.testing.assert_allclose(result, numbers, rtol=0, atol=limit)
        assert np.abs(result - numbers).max() > 0
    with pytest.raises(NoForm, match="quantised"):
        shared.torch_module()
