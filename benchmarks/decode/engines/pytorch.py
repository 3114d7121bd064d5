"""PyTorch: transformers' own decoder, eager; compiled by Inductor with a static cache; and with weights of torchao."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import transformers

from benchmarks.decode.engines.engine import Array, Decoding, Given
from benchmarks.decode.network import in_float32
from benchmarks.decode.weights import read


class _PyTorch:
    def __init__(self, given: Given) -> None:
        torch.set_num_threads(given.threads)
        weights = read(given.folder, given.precision)
        self._model = in_float32(weights)
        if given.precision == "int8":
            from torchao.quantization import Int8WeightOnlyConfig, quantize_

            quantize_(self._model, Int8WeightOnlyConfig())
        self._capacity = weights.shape.capacity
        self._is_static = given.variant == "compiled"
        self._call: Any = torch.compile(self._model, dynamic=False) if self._is_static else self._model
        self._cache: Any = None

    def prefill(self, ids: Sequence[int]) -> Array:
        if not self._is_static:
            self._cache = transformers.DynamicCache()
        elif self._cache is None:
            self._cache = transformers.StaticCache(config=self._model.config, max_cache_len=self._capacity)
        else:
            with torch.inference_mode():  # as it was made
                self._cache.reset()
        self._position = 0
        return self._taken(ids)

    def step(self, token: int) -> Array:
        return self._taken([token])

    def _taken(self, ids: Sequence[int]) -> Array:
        positions = torch.arange(self._position, self._position + len(ids))[None]
        self._position += len(ids)
        with torch.inference_mode():
            found = self._call(
                input_ids=torch.tensor([list(ids)]),
                position_ids=positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return found.logits.reshape(-1).numpy()


def load(given: Given) -> Decoding:
    return _PyTorch(given)
