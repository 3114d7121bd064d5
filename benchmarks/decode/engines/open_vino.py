"""OpenVINO, with the graph of ONNX Runtime. Its cache grows: each call returns it with the new tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino

from benchmarks.decode.engines.engine import Array, Decoding, Given
from benchmarks.decode.weights import Shape, graph_path, read_shape


class _OpenVino:
    def __init__(self, given: Given, shape: Shape) -> None:
        core = openvino.Core()
        options: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": given.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": 1,
        }
        if not given.variant:
            options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
        compiled = core.compile_model(str(graph_path(given.folder, "")), "CPU", options)
        self._request = compiled.create_infer_request()
        self._shape = shape
        self._position = 0
        self._cache: dict[str, Array] = {}

    def prefill(self, ids: Sequence[int]) -> Array:
        shape, self._position = self._shape, 0
        empty = np.zeros((1, shape.key_heads, 0, shape.head_size), "float32")
        self._cache = {f"{kind}_{n}": empty for n in range(shape.layers) for kind in ("key", "value")}
        return self._taken(ids)

    def step(self, token: int) -> Array:
        return self._taken([token])

    def _taken(self, ids: Sequence[int]) -> Array:
        self._position += len(ids)
        inputs = {
            "ids": np.asarray([ids], "int64"),
            "last": np.asarray([len(ids) - 1], "int64"),
            "before": np.asarray([self._position - 1], "int32"),
            "total": np.asarray([self._position], "int32"),
        }
        found = self._request.infer(inputs | {f"past_{name}": value for name, value in self._cache.items()})
        self._cache = {name: found[f"present_{name}"] for name in self._cache}
        return found["logits"].reshape(-1)


def load(given: Given) -> Decoding:
    return _OpenVino(given, read_shape(given.folder))
