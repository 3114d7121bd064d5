"""ONNX Runtime with all graph optimisations, on inputs and outputs that are bound once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime

from benchmarks.quality.engines.engine import Prepare, Prepared
from benchmarks.quality.shared import Shared


def variants(shared: Shared, threads: int) -> Iterator[tuple[str, Prepare]]:
    yield "ORT_ENABLE_ALL", lambda: _prepared(shared, threads)


def _prepared(shared: Shared, threads: int) -> Prepared:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(shared.onnx), options, providers=["CPUExecutionProvider"])
    arrays = [array.view(np.uint8) for array in shared.inputs] if shared.precision == "int8" else shared.inputs
    fed = dict(zip((node.name for node in session.get_inputs()), arrays, strict=True))
    (first,) = session.run(None, fed)
    output = onnxruntime.OrtValue.ortvalue_from_numpy(first)
    binding = session.io_binding()
    for name, array in fed.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output(session.get_outputs()[0].name, output)

    def call() -> None:
        session.run_with_iobinding(binding)

    return Prepared(call, output.numpy)
