"""Tunes a Llama-like decoder with random weights in float32, int8 and int4, and times it beside other engines.

An interrupted run continues with the precisions that have no result yet.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.code import ROOT
from benchmarks.decode.child import REFERENCE, Loaded, Sample
from benchmarks.decode.engines import OURS, RIVALS, EngineInfo
from benchmarks.decode.export import PROMPT
from benchmarks.decode.network import network
from benchmarks.decode.weights import BITS, GGUF, decoder_path, read, rounds_rows
from benchmarks.quality.service import Service, service_of
from benchmarks.report import RAW
from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded
from loopwright import decoder_programs
from loopwright.codegen.host import lock as host_lock
from loopwright.comparing import processes
from loopwright.comparing.processes import EngineProcess

SMOKE = ("--precisions", "int4", "--seconds", "10", "--rounds", "2", "--steps", "4", "--small")
_MOST_TRIALS = 4096
"""Of a program, whose seconds end the search."""


def add_options(parser: argparse.ArgumentParser) -> None:
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--rivals", type=Path, default=Path(sys.executable), help="Python with the rivals")
    parser.add_argument("--precisions", nargs="+", choices=list(BITS), default=list(BITS), help="of the weights")
    parser.add_argument("--threads", type=int, default=cores, help="of every engine (default: %(default)s, all cores)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of search for each program")
    parser.add_argument("--only", nargs="+", metavar="ENGINE", help="engines to time whose names begin like this")
    parser.add_argument("--rounds", type=int, default=8, help="of samples (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=32, help="tokens of a sample (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="a small decoder, which is loaded in seconds")
    parser.add_argument("--port", type=int, default=8099, help="of the service (default: %(default)s)")


def run(options: argparse.Namespace, raw: Raw) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the service ends
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    folder = RAW / ("decode-small" if options.small else "decode")
    with embedded(options.port, folder / "service") as client:
        service = service_of(client.url, folder / "service")
        for precision in options.precisions:
            if ("timed", precision) in raw.latest("kind", "precision"):
                continue
            done = raw.latest("kind", "precision", "variant")
            export(folder / precision, precision, options)
            for variant in (engine.variant for engine in OURS if precision in engine.precisions):
                if ("tuned", precision, variant) not in done:
                    raw.append(tuned(service, folder / precision, precision, variant, options))
                if ("compiled", precision, variant) not in done:
                    raw.append(compiled(service, folder / precision, precision, variant))
            for line in timed(service, folder / precision, precision, options):
                raw.append(line)


def export(folder: Path, precision: str, options: argparse.Namespace) -> None:
    """Write the files of a precision that are missing."""
    if not (folder / REFERENCE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        _module(sys.executable, "benchmarks.decode.export", folder, precision, *(["smoke"] if options.small else []))
    if not (folder / GGUF).exists():
        with contextlib.suppress(subprocess.CalledProcessError):  # the line of llama.cpp says what was missing
            _module(options.rivals.absolute(), "benchmarks.decode.gguf_file", folder, precision)


def _module(python: str | Path, module: str, *arguments: str | Path, **environment: str) -> None:
    """Run a module of the benchmark.

    Raises:
        CalledProcessError: It failed.
    """
    path = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    command = [str(python), "-m", module, *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path} | environment, check=True)


def tuned(service: Service, folder: Path, precision: str, variant: str, options: argparse.Namespace) -> dict[str, Any]:
    """Tune the programs of a decoder, and return the line that says what the search took.

    Raises:
        RuntimeError: A job failed.
    """
    weights = read(folder, precision)
    jobs = []
    programs = decoder_programs(
        network(weights),
        max_length=weights.shape.capacity,
        prompt_lengths=(PROMPT,),
        int8_activations=rounds_rows(variant),
    )
    with service.client() as client:
        for length, program in programs.items():
            job = client.submit(
                program,
                max_trials=_MOST_TRIALS,
                max_seconds=options.seconds,
                name=f"decode {precision} {length} {variant}".strip(),
            )
            job.wait(progress=False)
            if job.state not in ("succeeded", "partly"):
                raise RuntimeError(f"the job of {length} tokens in {precision} {job.state}: {job.error}")
            tasks = [[task.name, task.weight, task.baseline_us, task.best_us] for task in job.tasks]
            jobs.append({"length": length, "trials": job.progress.trials, "tasks": tasks, "notes": job.info.notes})
    shared = {"kind": "tuned", "precision": precision, "variant": variant}
    return {**shared, "seconds": options.seconds, "jobs": jobs}


def compiled(service: Service, folder: Path, precision: str, variant: str) -> dict[str, Any]:
    """Compile a decoder and save it, and return the line that says how long that took."""
    began = time.monotonic()
    shutil.rmtree(decoder_path(folder, variant), ignore_errors=True)
    _module(sys.executable, "benchmarks.decode.compile", folder, precision, variant, **service.environment)
    seconds = time.monotonic() - began
    return {"kind": "compiled", "precision": precision, "variant": variant, "seconds": seconds}


def timed(service: Service, folder: Path, precision: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a line for each engine: what became of it, and its samples, which engines take in turn."""
    weights = read(folder, precision)
    engines = [engine for engine in (*OURS, *RIVALS) if precision in engine.precisions]
    engines = [engine for engine in engines if not options.only or engine.title.startswith(tuple(options.only))]
    loaded: dict[str, Loaded] = {}
    with contextlib.ExitStack() as stack:
        ready = []
        for engine in engines:
            process = stack.enter_context(started(engine, service, folder, precision, options))
            try:
                loaded[engine.title] = Loaded(**process.read())
            except RuntimeError as error:
                loaded[engine.title] = Loaded(failure=str(error))
            if loaded[engine.title].failure is None:
                ready.append(process)
            print(precision, engine.title, loaded[engine.title], flush=True)
        with service.paused():
            samples = taken(ready, options.rounds)
    shared = {"kind": "timed", "precision": precision, "prompt": PROMPT, "steps": options.steps}
    shared |= {"bytes": weights.bytes, "parameters": weights.parameters, "shape": asdict(weights.shape)}
    shared |= {"conditions": conditions(options.threads)}
    return [
        shared
        | {"engine": title, "loaded": asdict(each), "samples": [asdict(sample) for sample in samples.get(title, [])]}
        for title, each in loaded.items()
    ]


def taken(ready: Sequence[EngineProcess], rounds: int) -> dict[str, list[Sample]]:
    """Return the samples of each engine, in an order that changes from round to round."""
    order = random.Random(0)
    found: dict[str, list[Sample]] = {process.name: [] for process in ready}
    for _ in range(rounds):
        with host_lock.quiet():
            for process in order.sample(ready, len(ready)):
                found[process.name].append(Sample(**process.ask("sample")))
    return found


def started(
    engine: EngineInfo, service: Service, folder: Path, precision: str, options: argparse.Namespace
) -> contextlib.AbstractContextManager[EngineProcess]:
    """Start the process of an engine."""
    given = {"folder": str(folder), "precision": precision, "threads": options.threads, "prompt": PROMPT}
    specification = {
        "module": engine.module,
        "packages": engine.packages,
        "given": given | {"variant": engine.variant},
        "steps": options.steps,
    }
    is_ours = engine in OURS
    # A user's process sets no thread counts: that is the task of Client.compile_decoder.
    threads = {} if is_ours else dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
    path = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    command = [sys.executable if is_ours else str(options.rivals.absolute()), "-m", "benchmarks.decode.child"]
    return processes.started(
        engine.title, command, specification, {**service.environment, **threads, "PYTHONPATH": path}
    )
