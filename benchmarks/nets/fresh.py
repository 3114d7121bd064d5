"""A fresh process that loads a net and calls it: how long loading takes, and how much memory is resident afterwards.

PYTHON -m benchmarks.nets.fresh ENGINE FOLDER

It prints ``{"seconds": from the engine's import to the loaded net, "resident_mib": after some calls}``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CACHE = "cache"
"""The folder of compiled nets, beside the net's file."""
_CALLS = 3

Call = Callable[[], object]


def main() -> None:
    engine, folder = sys.argv[1], Path(sys.argv[2])
    with np.load(folder / "inputs.npz") as arrays:
        inputs = [arrays[name] for name in arrays.files]
    started = time.perf_counter()
    call = _LOADERS[engine](folder, inputs)
    seconds = time.perf_counter() - started
    for _ in range(_CALLS):
        call()
    print(json.dumps({"seconds": seconds, "resident_mib": _resident_mib()}))


def _loopwright(folder: Path, inputs: list[Any]) -> Call:
    import loopwright

    with loopwright.Client() as client:
        model = client.compile(folder / "model.pt2", cache=folder / CACHE)
    return lambda: model(*inputs)


def _onnx_runtime(folder: Path, inputs: list[Any]) -> Call:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    named = dict(zip((each.name for each in session.get_inputs()), inputs, strict=True))
    return lambda: session.run(None, named)


_LOADERS: dict[str, Callable[[Path, list[Any]], Call]] = {"Loopwright": _loopwright, "ONNX Runtime": _onnx_runtime}
ENGINES = tuple(_LOADERS)


def _resident_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


if __name__ == "__main__":
    main()
