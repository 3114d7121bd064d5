"""Results of a race's reference on their way from the child that ran it to the child that races on the board."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from loopwright.codegen.arrays import Array, numpy_dtype
from tuner.types import TensorInfo
from workers.board_messages import ReferenceResults


def packed(inputs: Sequence[Array], results: Sequence[Array]) -> ReferenceResults:
    """Return the results as a message, without what the call has left as it was."""
    return ReferenceResults(
        tuple(
            None if before.tobytes() == after.tobytes() else base64.b64encode(after.tobytes()).decode()
            for before, after in zip(inputs, results, strict=True)
        )
    )


def unpacked(results: ReferenceResults, inputs: Sequence[Array], args: Sequence[TensorInfo]) -> list[Array]:
    """Return the results as arrays, given the inputs of the call."""
    return [
        before if value is None else _array(value, info)
        for before, value, info in zip(inputs, results.values, args, strict=True)
    ]


def _array(text: str, info: TensorInfo) -> Array:
    return np.frombuffer(base64.b64decode(text), numpy_dtype(info.dtype)).reshape(info.shape)
