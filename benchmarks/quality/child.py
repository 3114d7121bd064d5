"""The process of one engine for one case: prepares it, and then takes a sample whenever it is asked to.

PYTHON -m benchmarks.quality.child SPECIFICATION

The specification is JSON: ``{"engine", "shared": {fields of `Shared`}, "threads", "variant" or null}``. The process
answers with lines of JSON on standard output: first with an `Answer`, and then to each line of standard input. To
``choose`` it answers with the latencies of the variants, of which the fastest is timed from then on, and to ``sample``
with the seconds of a call. In between it waits and computes nothing.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.quality.engines import ENGINES
from benchmarks.quality.engines.engine import Prepare, Prepared
from benchmarks.quality.protocol import Answer, Choice, Sample, Variant
from benchmarks.quality.shared import Shared
from benchmarks.search.run_record import peak_mb

WARM_SECONDS = 0.05
"""Calls before each sample, which wake the cores and bring the engine's data back into the caches."""
BATCH_SECONDS = 0.01
BATCHES = 5
"""In a sample, which is their median. Both not tuned."""
_TRIES = 3
"""Samples by which the variants of an engine are compared."""


def main() -> None:
    specification = json.loads(sys.argv[1])
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    fields = specification["shared"]
    shared = Shared(**fields | {"folder": Path(fields["folder"])})
    answer, ready = prepare(specification["engine"], shared, specification["threads"], specification["variant"])
    print(json.dumps(asdict(answer)), file=answers)
    gc.disable()
    chosen = next(iter(ready), "")
    for command in sys.stdin:
        if command.strip() == "choose":
            choice = choose({name: prepared.call for name, prepared in ready.items()})
            chosen = choice.variant
            print(json.dumps(asdict(choice)), file=answers)
        else:
            print(json.dumps(asdict(Sample(sample(ready[chosen].call), peak_mb()))), file=answers)


def prepare(engine: str, shared: Shared, threads: int, only: str | None) -> tuple[Answer, dict[str, Prepared]]:
    """Compile the variants of an engine, or ``only`` one, and return what became of them with those that work."""
    warnings.simplefilter("ignore")
    answer, ready = Answer(), {}
    try:
        for name, compile_variant in ENGINES[engine].variants()(shared, threads):
            if only is not None and name != only:
                continue
            try:
                answer.variants[name], ready[name] = _tried(compile_variant, shared)
            except Exception as error:
                answer.failures[name] = _first_line(error)
        answer.versions = {name: importlib.metadata.version(name) for name in ENGINES[engine].packages}
    except ImportError as error:
        answer.failures[engine] = _first_line(error)
    return answer, ready


def _tried(compile_variant: Prepare, shared: Shared) -> tuple[Variant, Prepared]:
    """Compile a variant, and compare its output with the reference.

    Raises:
        ValueError: The output differs by more than the case tolerates.
    """
    started = time.perf_counter()
    prepared = compile_variant()
    prepared.call()
    seconds = time.perf_counter() - started
    error = shared.error(prepared.output())
    if not error <= shared.tolerance:
        raise ValueError(f"the output differs from the reference by {error:.1e}, more than {shared.tolerance:.0e}")
    return Variant(seconds, error, prepared.note), prepared


def choose(calls: dict[str, Callable[[], object]]) -> Choice:
    """Compare the variants of an engine by samples in turn; the best sample of each counts."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_TRIES):
        for name, call in calls.items():
            samples[name].append(sample(call))
    latencies = {name: min(taken) for name, taken in samples.items()}
    return Choice(min(latencies, key=latencies.__getitem__), latencies)


def sample(call: Callable[[], object]) -> float:
    """Return the seconds of a call: the median of some batches after a warm-up, which also finds their size."""
    started = now = time.perf_counter()
    warmed = 0
    while now - started < WARM_SECONDS:
        call()
        warmed += 1
        now = time.perf_counter()
    number = max(1, round(BATCH_SECONDS * warmed / (now - started)))
    batches = []
    for _ in range(BATCHES):
        started = time.perf_counter()
        for _ in range(number):
            call()
        batches.append((time.perf_counter() - started) / number)
    return statistics.median(batches)


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text.splitlines()[0]}"[:300]


if __name__ == "__main__":
    main()
