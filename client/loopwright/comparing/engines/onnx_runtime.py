"""ONNX Runtime with all graph optimisations, on inputs and outputs that are bound once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import onnxruntime

from loopwright.comparing.case import Case, NoForm
from loopwright.comparing.engines.engine import Prepare, Prepared


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    graphs = case.graphs
    for name, graph in graphs.items():
        yield name if len(graphs) > 1 else "ORT_ENABLE_ALL", partial(_prepared, case, graph, threads)


def _prepared(case: Case, graph: Path, threads: int) -> Prepared:
    if case.precision == "bf16":
        raise NoForm("ONNX Runtime takes no bf16 from NumPy arrays")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    fed = dict(zip(names, case.inputs, strict=True))
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
