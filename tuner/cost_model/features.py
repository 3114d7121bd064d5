"""Per-store features of scheduled programs (Zheng et al., Ansor, OSDI 2020), extracted by TVM."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.transform import ConvertSSA

from loopwright.codegen.weights.prepacking import split

FEATURES = 164
"""Length of one store's feature vector."""

Features = npt.NDArray[np.float32]
"""The features of one program: float32 [stores, 164]."""

_STORED = np.dtype("<f2")

_extractor = ms.feature_extractor.PerStoreFeature()


def extract(context: ms.TuneContext, schedules: Sequence[Schedule]) -> list[Features]:
    """Return the features of what a call of each schedule computes, float32 [stores, 164], in the given order."""
    if not schedules:
        return []
    candidates = [ms.MeasureCandidate(_timed(schedule), []) for schedule in schedules]
    return [tensor.numpy().astype(np.float32) for tensor in _extractor.extract_from(context, candidates)]


def _timed(schedule: Schedule) -> Schedule:
    """Return a schedule of what a call computes, without the packing of a weight, which TVM's extractor cannot take."""
    mod, packed = split(schedule.mod)
    if packed is None:
        return schedule
    # A partitioned loop defines variables twice, which a schedule of its own may not.
    return Schedule(ConvertSSA()(tvm.IRModule({"main": mod["main"]})))


def to_bytes(features: Features) -> bytes:
    """Return compressed little-endian float16 in row-major order, for storing.

    Features are logarithms and shares, below 100: a model learns the same from them as from float32, and they take a
    third less.
    """
    return zlib.compress(features.astype(_STORED).tobytes(), 9)


def from_bytes(data: bytes) -> Features:
    """Return the features that `to_bytes` encoded."""
    return np.frombuffer(zlib.decompress(data), _STORED).reshape(-1, FEATURES).astype(np.float32)
