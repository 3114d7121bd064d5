"""The comparison: engines are compiled one after another, and then timed in turn, round by round."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loopwright import schemas
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.host import threads
from loopwright.comparing import processes
from loopwright.comparing.engines import (
    INDUCTOR,
    ONNX_RUNTIME,
    OPENVINO,
    OURS,
    PYTORCH,
    RIVALS,
    UNTUNED,
    EngineInfo,
)
from loopwright.comparing.files import Files
from loopwright.comparing.processes import EngineProcess
from loopwright.comparing.protocol import EngineResult
from loopwright.comparing.ratios import paired
from loopwright.frontends import onnx, torch
from loopwright.results.comparison import Comparison
from loopwright.results.units import plural

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Rounds:
    """How much is measured: processes of each engine, one after another, and rounds in each."""

    processes: int = 2
    rounds: int = 8


def engines_named(names: Sequence[str]) -> list[EngineInfo]:
    """Return Loopwright and the engines of these names.

    Raises:
        ValueError: there is no engine of that name.
    """
    if unknown := [name for name in names if name not in RIVALS]:
        raise ValueError(f"no engine is called {', '.join(unknown)}; choose from {', '.join(RIVALS)}")
    return [OURS, *(RIVALS[name] for name in dict.fromkeys(names))]


def used_today(model: Any) -> list[str]:
    """Return the names of the engines that a model's framework runs it with: those that are installed here.

    Without one, it is the same program untuned.
    """
    usual: tuple[EngineInfo, ...] = ()
    if torch.accepts(model):
        usual = (PYTORCH, INDUCTOR)
    elif onnx.accepts(model):
        usual = (ONNX_RUNTIME, OPENVINO)
    return [each.name for each in usual if _is_installed(each)] or [UNTUNED.name]


def _is_installed(engine: EngineInfo) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in engine.packages)


def compare(
    files: Files,
    engines: Sequence[EngineInfo],
    environment: Mapping[str, str],
    amount: Rounds,
    *,
    reference: str,
    say: Say,
) -> Comparison:
    """Compile and time the engines. Ratios are over the first of them.

    ``environment`` holds how the service is reached, ``say`` is told what is done.
    """
    count = threads.usable_cores()
    results = {engine.name: EngineResult() for engine in engines}
    for number in range(amount.processes):
        with contextlib.ExitStack() as stack:
            ready = []
            for engine in engines:
                result = results[engine.name]
                if number and result.choice is None:
                    continue
                say(f"{engine.title} compiles the model")
                process = stack.enter_context(_started(engine, files, count, environment, result))
                answer = process.answer()
                if not number:
                    result.answer = answer
                if answer.variants:
                    ready.append(process)
                elif number:
                    result.answer.failures[""], result.choice = "; ".join(answer.failures.values()), None
            if not number:
                with host_lock.quiet():
                    _choose(ready, results, say)
            alive = [process for process in ready if results[process.name].choice is not None]
            say(f"{plural(len(alive), 'engine')} in turn, {plural(amount.rounds, 'round')}")
            processes.rounds(alive, results, amount.rounds, seed=number)
    first, *others = engines
    return Comparison(
        machine=_cpu_model(),
        threads=count,
        precision=files.precision,
        tolerance=files.tolerance,
        reference=reference,
        engines=[
            _on_wire(first, results[first.name], None),
            *(_on_wire(engine, results[engine.name], results[first.name]) for engine in others),
        ],
    )


def _started(
    engine: EngineInfo, files: Files, count: int, environment: Mapping[str, str], result: EngineResult
) -> contextlib.AbstractContextManager[EngineProcess]:
    specification = {
        "module": engine.module,
        "packages": engine.packages,
        "case": str(files.folder),
        "threads": count,
        "variant": result.choice.variant if result.choice else None,
    }
    # A user's process sets no numbers of threads: that is the task of Client.compile.
    numbers = {} if engine is OURS else {name: str(count) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, "-m", "loopwright.comparing.child"]
    # It finds what this process finds.
    path = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), *sys.path)))
    return processes.started(engine.name, command, specification, {**environment, **numbers, "PYTHONPATH": path})


def _choose(ready: Sequence[EngineProcess], results: Mapping[str, EngineResult], say: Say) -> None:
    say("each engine chooses the fastest of its settings")
    for process in ready:
        try:
            results[process.name].choice = process.choose()
        except RuntimeError as error:
            results[process.name].answer.failures[""] = str(error)


def _on_wire(engine: EngineInfo, result: EngineResult, first: EngineResult | None) -> schemas.ComparedEngine:
    chosen = result.chosen
    samples = [taken for process in result.samples for taken in process] if chosen else []
    failure = (
        None
        if samples
        else "; ".join(dict.fromkeys(result.answer.failures.values())) or "it has no setting for this model"
    )
    ratio = paired(result.samples, first.samples) if samples and first and first.choice else None
    return schemas.ComparedEngine(
        name=engine.name,
        title=engine.title,
        versions=result.answer.versions,
        setting=result.choice.variant if result.choice and len(result.answer.variants) > 1 else None,
        note=chosen.note if chosen else "",
        us=statistics.median(samples) * 1e6 if samples else None,
        run_secs=result.samples if samples else [],
        ratio=ratio and schemas.Interval(value=ratio.value, low=ratio.low, high=ratio.high),
        error=chosen.error if chosen else None,
        compile_seconds=chosen.seconds if chosen else None,
        peak_mb=result.peak_mb if samples else None,
        failure=failure and failure[:500],
        install=f"pip install {' '.join(engine.needs)}" if result.answer.is_missing else None,
    )


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    fields = (line.split(":", 1) for line in lines if ":" in line)
    return next((value.strip() for name, value in fields if name.strip() in ("model name", "CPU part")), "unknown CPU")
