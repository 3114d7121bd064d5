"""Loopwright: the decoder that `Client.compile_decoder` returned, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence

import tvm  # noqa: F401  # imported before the memory is measured, as the other engines' libraries are

from benchmarks.decode.engines.engine import Array, Decoding, Given
from benchmarks.decode.weights import decoder_path
from loopwright import Decoder


class _Ours:
    def __init__(self, given: Given) -> None:
        self._decoder = Decoder.load(decoder_path(given.folder, given.variant))

    def prefill(self, ids: Sequence[int]) -> Array:
        self._decoder.reset()
        return self._decoder.prefill(ids)

    def step(self, token: int) -> Array:
        return self._decoder.step(token)


def load(given: Given) -> Decoding:
    return _Ours(given)
