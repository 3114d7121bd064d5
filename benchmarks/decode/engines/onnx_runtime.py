"""ONNX Runtime, with its own operators for decoders, and a cache that is written in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort

from benchmarks.decode.engines.engine import Array, Decoding, Given
from benchmarks.decode.weights import Shape, graph_path, read_shape


class _OnnxRuntime:
    def __init__(self, given: Given, shape: Shape) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = given.threads
        path = graph_path(given.folder, given.variant)
        self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        extents = (1, shape.key_heads, shape.capacity, shape.head_size)
        self._cache = {
            f"{kind}_{n}": ort.OrtValue.ortvalue_from_shape_and_type(extents, np.float32)
            for n in range(shape.layers)
            for kind in ("key", "value")
        }
        self._position = 0

    def prefill(self, ids: Sequence[int]) -> Array:
        self._position = 0
        return self._taken(ids)

    def step(self, token: int) -> Array:
        return self._taken([token])

    def _taken(self, ids: Sequence[int]) -> Array:
        self._position += len(ids)
        binding = self._session.io_binding()
        binding.bind_cpu_input("ids", np.asarray([ids], "int64"))
        binding.bind_cpu_input("last", np.asarray([len(ids) - 1], "int64"))
        binding.bind_cpu_input("before", np.asarray([self._position - 1], "int32"))
        binding.bind_cpu_input("total", np.asarray([self._position], "int32"))
        binding.bind_output("logits")
        for name, value in self._cache.items():
            binding.bind_ortvalue_input(f"past_{name}", value)
            binding.bind_ortvalue_output(f"present_{name}", value)
        self._session.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy().reshape(-1)


def load(given: Given) -> Decoding:
    return _OnnxRuntime(given, read_shape(given.folder))
