"""The benchmark of a decoder: all engines are given the same numbers, and the report says what the lines do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.decode import onnx_graph, report
from benchmarks.decode.child import prompt
from benchmarks.decode.engines import onnx_runtime
from benchmarks.decode.engines.engine import Given
from benchmarks.decode.export import expected
from benchmarks.decode.network import in_float32, network
from benchmarks.decode.weights import SMOKE, drawn, graph_path, nibbles, quantised, read

SHAPE = replace(SMOKE, hidden=64, intermediate=96, vocabulary=1000, capacity=32)


@pytest.mark.parametrize(("bits", "steps"), [(8, 127), (4, 7)])
def test_quantised_numbers_are_the_nearest_of_their_bits(bits: int, steps: int) -> None:
    values = np.random.default_rng(1).standard_normal((6, 96), dtype="float32")
    matrix = quantised(values, bits)
    assert matrix.scales is not None
    assert np.abs(matrix.numbers).max() == steps
    assert (matrix.scales == matrix.scales.astype("float16")).all()
    error = np.abs(matrix.values() - values).reshape(6, 3, 32).max(-1)
    assert (error <= 0.51 * matrix.scales).all()


def test_the_first_of_two_nibbles_is_the_low_half() -> None:
    assert nibbles(np.array([[-8, 7, 0, -1]], "int8")).tolist() == [[0xF0, 0x78]]


@pytest.mark.parametrize("precision", ["float32", "int8", "int4"])
def test_engines_compute_the_same_logits(precision: str, tmp_path: Path) -> None:
    weights = drawn(SHAPE, precision)
    weights.write(tmp_path)
    again = read(tmp_path, precision)
    assert (again.bytes, again.parameters) == (weights.bytes, weights.parameters)
    reference = expected(weights, 5)
    ids = torch.tensor([prompt(5)])
    with torch.no_grad():
        packed, plain = (model(again)(input_ids=ids).logits[0, -1].numpy() for model in (network, in_float32))
    np.testing.assert_allclose(plain, reference[0], atol=1e-4)
    np.testing.assert_allclose(packed, reference[0], atol=1e-4)
    onnx_graph.write(again, graph_path(tmp_path, ""), 1)
    engine = onnx_runtime.load(Given(tmp_path, precision, 1, 5))
    for _ in range(2):  # a second prompt forgets the first one
        np.testing.assert_allclose(engine.prefill(prompt(5)), reference[0], atol=1e-4)
        np.testing.assert_allclose(engine.step(7), reference[1], atol=1e-4)


def line(
    engine: str, precision: str, tokens: list[float], memory: int, failure: str | None = None, error: float = 1e-6
) -> dict[str, Any]:
    samples = [{"first": 10 * token, "token": token} for token in tokens]
    loaded = {"versions": {"torch": "2"}, "failure": failure, "seconds": 1.0, "error": error, "memory": memory}
    return {
        "kind": "timed",
        "precision": precision,
        "engine": engine,
        "loaded": loaded,
        "samples": samples,
        "bytes": 1000,
        "prompt": 64,
    }


def test_requirements_are_over_the_best_rival_and_say_what_did_not_run() -> None:
    lines = [
        line("Loopwright", "int4", [1.0, 1.0, 1.0], 1200),
        line("ONNX Runtime", "int4", [3.0, 3.0, 3.0], 2000),
        line("llama.cpp", "int4", [1.5, 1.5, 1.5], 1000),
        line("OpenVINO", "int4", [0.5, 0.5, 0.5], 1000),
        line("Loopwright", "int8", [], 0, failure="RuntimeError: no memory"),
        line("llama.cpp", "int8", [1.0], 1000),
    ]
    found = {one.what: one for one in report.requirements(lines)}
    tokens = found["int4: tokens per second, over the best of llama.cpp and ONNX Runtime"]
    assert (tokens.measured, tokens.verdict) == (1.5, "aim reached")
    assert found["int4: resident memory over the weights' size"].verdict == "must reached"
    assert found["int8: tokens per second, over the best of llama.cpp and ONNX Runtime"].measured is None
    assert found["float32: resident memory over the weights' size"].measured is None
    rows = [report._row(lines, each) for each in lines]
    assert rows[1][2].startswith("3.00")
    assert rows[4][1] == "did not run: RuntimeError: no memory"


def test_engines_that_round_rows_are_compared_with_ours_that_does() -> None:
    lines = [
        line("Loopwright", "int4", [4.0], 1200),
        line("Loopwright, int8 rows", "int4", [2.0], 1200, error=2e-2),
        line("ONNX Runtime", "int4", [8.0], 1000),
        line("llama.cpp", "int4", [3.0], 1000, error=2e-2),
    ]
    ratios = [ratio for each in lines[2:] if (ratio := report.ratio(lines, each, "token")) is not None]
    assert [ratio.value for ratio in ratios] == [2.0, 1.5]
    assert [report._row(lines, each)[2] for each in lines[:2]] == ["", ""]
    assert report.ratio([lines[0], lines[3]], lines[3], "token") is None
