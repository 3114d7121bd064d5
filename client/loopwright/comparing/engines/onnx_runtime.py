"""ONNX Runtime with all graph optimisations, on inputs and outputs that are bound once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnxruntime

from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.comparing.given import Given, NotGiven


def variants(given: Given, threads: int) -> Iterator[tuple[str, Prepare]]:
    graph = next(iter(given.graphs.values()))
    yield "ORT_ENABLE_ALL", lambda: _prepared(given, graph, threads)


def _prepared(given: Given, graph: Path, threads: int) -> Prepared:
    if given.precision == "bf16":
        raise NotGiven("ONNX Runtime takes no bf16 from NumPy arrays")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    fed = dict(zip(names, given.inputs, strict=True))
    first = session.run(None, fed)
    outputs = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in first]
    binding = session.io_binding()
    for name, array in fed.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for node, value in zip(session.get_outputs(), outputs, strict=True):
        binding.bind_ortvalue_output(node.name, value)

    def call() -> None:
        session.run_with_iobinding(binding)

    return Prepared(call, lambda: [value.numpy() for value in outputs])
