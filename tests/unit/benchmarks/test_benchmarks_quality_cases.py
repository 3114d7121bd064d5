"""The cases of the comparison with rivals: what they are, and that each of them runs and can be submitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Kind
from benchmarks.quality.shared import Shared, of
from loopwright import frontends
from loopwright.comparing.child import choose, prepare
from loopwright.comparing.engines import PYTORCH
from loopwright.comparing.given import as_arrays
from loopwright.frontends import Options

ONE_A_FAMILY = {case.family: case for case in CASES.values() if case.kind is Kind.OPERATOR}.values()


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
    assert kinds.count(Kind.OPERATOR) >= 24
    assert kinds.count(Kind.MODEL) >= 5
    assert {case.precision.value for case in CASES.values()} == {"f32", "bf16", "int8"}
    assert sum(case.with_stock for case in CASES.values()) >= 4


@pytest.mark.parametrize("name", CASES)
def test_a_module_is_the_same_each_time_and_nothing_in_it_is_trained(name: str) -> None:
    case = CASES[name]
    first, second = case.module(), case.module()
    assert not first.training
    assert not any(parameter.requires_grad for parameter in first.parameters())
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key
    assert all(torch.equal(one, other) for one, other in zip(case.inputs(), case.inputs(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_module_computes_finite_numbers_that_differ(name: str) -> None:
    case = CASES[name]
    with torch.no_grad():
        output = case.module()(*case.inputs()).float()
    assert torch.isfinite(output).all()
    assert output.std() > 0


@pytest.mark.parametrize("case", ONE_A_FAMILY, ids=lambda case: case.name)
def test_an_operator_of_each_family_can_be_submitted(case: Case) -> None:
    program = frontends.to_program(case.module(), Options(case.inputs(), None))
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
    model, options = written(CASES["int8-512"], tmp_path).program()
    assert not options
    detached = frontends.to_program(model, Options(None, None))
    assert [tuple(weight.shape) for weight in detached.weights.values()] == [(512, 512)]
