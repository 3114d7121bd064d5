"""llama.cpp, by the functions of its library. It rounds rows to int8 where weights have 8 or 4 bits."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import llama_cpp
import numpy as np

from benchmarks.decode.engines.engine import Array, Decoding, Given
from benchmarks.decode.weights import GGUF, read_shape


class _LlamaCpp:
    def __init__(self, given: Given) -> None:
        llama_cpp.llama_backend_init()
        shape = read_shape(given.folder)
        of_model = llama_cpp.llama_model_default_params()
        of_model.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(given.folder / GGUF).encode(), of_model)
        if not self._model:
            raise RuntimeError("llama.cpp cannot load the file")
        of_context = llama_cpp.llama_context_default_params()
        of_context.n_ctx = shape.capacity
        of_context.n_batch = of_context.n_ubatch = max(given.prompt, 32)
        of_context.n_threads = of_context.n_threads_batch = given.threads
        self._context = llama_cpp.llama_init_from_model(self._model, of_context)
        self._vocabulary = shape.vocabulary

    def prefill(self, ids: Sequence[int]) -> Array:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        return self._taken(ids)

    def step(self, token: int) -> Array:
        return self._taken([token])

    def _taken(self, ids: Sequence[int]) -> Array:
        tokens = (llama_cpp.llama_token * len(ids))(*ids)
        if status := llama_cpp.llama_decode(self._context, llama_cpp.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError(f"llama_decode returned {status}")
        logits = llama_cpp.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self._vocabulary,)).copy()


def load(given: Given) -> Decoding:
    return _LlamaCpp(given)
