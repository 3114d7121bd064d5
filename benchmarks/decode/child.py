"""The process of one engine: loads the decoder, and then makes tokens whenever it is asked to.

PYTHON -m benchmarks.decode.child SPECIFICATION

The specification is JSON: ``{"module": of the engine, "packages", "given": the fields of Given, "steps"}``. The process
answers on standard output: first with a `Loaded`, and then to each line of standard input with a `Sample`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decode.engines.engine import Decoding, Given

REFERENCE = "reference.npy"
"""Logits after the prompt, and after one more token, computed with weights in float32."""
SECOND = 7
"""The token that the reference takes after the prompt."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of an engine.

    Attributes:
        failure: Why it does not run; None if it does.
        seconds: From the files to the first token.
        error: The largest difference of logits from the reference's, as a share of the largest logit.
        memory: Bytes that are resident since the libraries were imported.
    """

    versions: dict[str, str] = field(default_factory=dict)
    failure: str | None = None
    seconds: float = 0.0
    error: float = 0.0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds to the first token, and seconds of a token after it."""

    first: float
    token: float


def main() -> None:
    specification = json.loads(sys.argv[1])
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    given = Given(**specification["given"] | {"folder": Path(specification["given"]["folder"])})
    decoding: Any = None
    try:
        loaded, decoding = _loaded(specification["module"], specification["packages"], given)
    except Exception as error:
        message = (str(error).strip() or "no message").splitlines()[0]
        loaded = Loaded(failure=f"{type(error).__name__}: {message}"[:300])
    print(json.dumps(asdict(loaded)), file=answers)
    gc.disable()
    for _ in sys.stdin:
        print(json.dumps(asdict(sample(decoding, prompt(given.prompt), specification["steps"]))), file=answers)


def prompt(length: int) -> list[int]:
    """Return the tokens of the prompt, which all vocabularies have."""
    return [(37 * place + 11) % 997 for place in range(length)]


def _loaded(module: str, packages: list[str], given: Given) -> tuple[Loaded, Decoding]:
    load = importlib.import_module(module).load
    versions = {name: importlib.metadata.version(name) for name in packages}
    before, began = resident(), time.perf_counter()
    decoding: Decoding = load(given)
    logits = [decoding.prefill(prompt(given.prompt))]
    seconds = time.perf_counter() - began
    logits.append(decoding.step(SECOND))
    sample(decoding, prompt(given.prompt), 2)  # a second prompt, for which some engines compile again
    expected = np.load(given.folder / REFERENCE)
    error = float(np.abs(np.stack(logits) - expected).max() / np.abs(expected).max())
    return Loaded(versions, seconds=seconds, error=error, memory=resident() - before), decoding


def sample(decoding: Decoding, ids: list[int], steps: int) -> Sample:
    """Take a prompt and make tokens, the likeliest each time."""
    began = time.perf_counter()
    token = int(decoding.prefill(ids).argmax())
    first = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(steps):
        token = int(decoding.step(token).argmax())
    return Sample(first, (time.perf_counter() - began) / steps)


def resident() -> int:
    """Return the bytes of this process that are in memory, without those that are free for later allocations."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) * 1024


if __name__ == "__main__":
    main()
