"""The process of one engine: prepares the model, and then takes a sample whenever it is asked to.

PYTHON -m loopwright.comparing.child SPECIFICATION

The specification is JSON: ``{"module": of the engine's variants, "packages", "case": path of a file that
`loopwright.comparing.files` reads, "threads", "variant" or null}``. The process answers with lines of JSON on standard
output: first with an `Answer`, and then to each line of standard input. To ``choose`` it answers with the latencies of
the variants, of which the fastest is timed from then on, and to ``sample`` with the seconds of a call. In between it
waits and computes nothing.
"""

from __future__ import annotations

import gc
import importlib
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
from typing import Any

from loopwright.comparing.case import Case, NoForm, largest_error
from loopwright.comparing.engines.engine import Prepare, Prepared, Variants
from loopwright.comparing.files import Files
from loopwright.comparing.protocol import Answer, ComparedVariant, EngineChoice, Sample

WARM_SECONDS = 0.05
"""Calls before each sample, which wake the cores and bring the engine's data back into the caches."""
BATCH_SECONDS = 0.01
BATCHES = 5
"""In a sample, which is their median. Both not tuned."""
_TRIES = 3
"""Samples by which the variants of an engine are compared."""


def main() -> None:
    specification = json.loads(sys.argv[1])
    serve(specification, Files.read(Path(specification["case"])))


def serve(specification: dict[str, Any], case: Case) -> None:
    """Prepare an engine for a model, and answer the commands on standard input until it ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    only, threads = specification["variant"], specification["threads"]
    answer, ready = prepare(specification["module"], specification["packages"], case, threads, only)
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


def prepare(
    module: str, packages: list[str], case: Case, threads: int, only: str | None
) -> tuple[Answer, dict[str, Prepared]]:
    """Compile the variants of an engine, or ``only`` one, and return what became of them with those that work."""
    warnings.simplefilter("ignore")
    answer = Answer()
    ready: dict[str, Prepared] = {}
    try:
        variants: Variants = importlib.import_module(module).variants
        answer.versions = {name: importlib.metadata.version(name) for name in packages}
    except ImportError as error:
        return Answer(failures={"": _first_line(error)}, is_missing=True), ready
    try:
        for name, compile_variant in variants(case, threads):
            if only is not None and name != only:
                continue
            try:
                answer.variants[name], ready[name] = _tried(compile_variant, case)
            except Exception as error:
                answer.failures[name] = _first_line(error)
    except Exception as error:
        answer.failures[""] = _first_line(error)
    return answer, ready


def _tried(compile_variant: Prepare, case: Case) -> tuple[ComparedVariant, Prepared]:
    """Compile a variant, and compare its outputs with what is expected.

    Raises:
        ValueError: they differ by more than is tolerated.
    """
    started = time.perf_counter()
    prepared = compile_variant()
    prepared.call()
    seconds = time.perf_counter() - started
    error = largest_error(prepared.outputs(), case.expected)
    if not error <= case.tolerance:
        raise ValueError(f"the output differs from the reference by {error:.1e}, more than {case.tolerance:.0e}")
    return ComparedVariant(seconds, error, prepared.note), prepared


def choose(calls: dict[str, Callable[[], object]]) -> EngineChoice:
    """Compare the variants of an engine by samples in turn; the best sample of each counts."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_TRIES):
        for name, call in calls.items():
            samples[name].append(sample(call))
    latencies = {name: min(taken) for name, taken in samples.items()}
    return EngineChoice(min(latencies, key=latencies.__getitem__), latencies)


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


def peak_mb() -> float:
    """Return this process's peak memory in MiB. `getrusage` would include the process that started this one."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def _first_line(error: BaseException) -> str:
    if isinstance(error, NoForm):
        return str(error)
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text.splitlines()[0]}"[:300]


if __name__ == "__main__":
    main()
