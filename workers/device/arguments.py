"""Arguments of a measured function on its device."""

from __future__ import annotations

from collections.abc import Sequence

# NumPy would load both in every fork, when they are first used: here by `draw`, and by TVM's time evaluator while the
# machine stands still for a timing.
import numpy.ma  # noqa: F401
import tvm
from numpy.random import default_rng

from loopwright.codegen.arrays import Array, index_bound, poison, random_array
from tuner.types import TensorInfo
from workers.messages import Device


def draw(args: Sequence[TensorInfo], outputs: Sequence[bool], kind: str, seed: int) -> list[Array]:
    """Return host arrays: random inputs of a kind (`loopwright.codegen.arrays.DRAWS`), poison for write-only ones."""
    rng = default_rng(seed)
    bound = index_bound(args)
    return [
        poison(info, kind) if output else random_array(info, kind, rng, bound)
        for info, output in zip(args, outputs, strict=True)
    ]


def to_device(arrays: Sequence[Array], device: tvm.runtime.Device) -> list[tvm.runtime.Tensor]:
    return [tvm.runtime.tensor(array, device=device) for array in arrays]


def tvm_device(device: Device) -> tvm.runtime.Device:
    return tvm.runtime.device("cuda", device.index) if device.kind == "cuda" else tvm.runtime.cpu(0)
