"""ONNX's own tests of its operators: what Loopwright takes, it computes as the standard says."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest
from onnx.backend.test.case.test_case import TestCase

from loopwright.errors import UnsupportedModel
from tests.support import onnx_nodes
from tests.support.onnx_nodes import Outcome

SAMPLE = 8
"""Operators of which one test runs in each round. They are drawn once: the seed is fixed."""


def test_operators_drawn_by_a_fixed_seed_compute_what_onnx_says() -> None:
    by_operator, by_opset = defaultdict(list), defaultdict(list)
    for case in onnx_nodes.of_tensors().values():
        by_operator[onnx_nodes.operator_of(case)].append(case)
    results = json.loads(onnx_nodes.RESULTS.read_text())
    generator = random.Random(0)
    for name in generator.sample([name for name, row in results.items() if row[Outcome.PASS]], SAMPLE):
        case = generator.choice(by_operator[name])
        try:
            onnx_nodes.taken(case)
        except UnsupportedModel:
            continue
        by_opset[case.model.opset_import[0].version].append(case)
    assert sum(map(len, by_opset.values())) > SAMPLE / 2
    for cases in by_opset.values():
        onnx_nodes.compare(*cases)


@pytest.mark.whole
def test_no_operator_computes_anything_else() -> None:
    """What is not right is refused, and the results that the documentation lists are these."""
    outcomes: list[tuple[TestCase, Outcome]] = []
    reasons = []
    for case in onnx_nodes.of_tensors().values():
        kind, reason = onnx_nodes.outcome(case)
        outcomes.append((case, kind))
        if kind is Outcome.DIFFERENT:
            reasons.append(reason)
    assert not reasons, "\n".join(reasons)
    assert onnx_nodes.counts(outcomes) == json.loads(onnx_nodes.RESULTS.read_text()), (
        "run python -m tests.support.onnx_nodes"
    )
