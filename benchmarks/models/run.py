"""Submits tiny models of many architectures to the embedded service, compiles them, and compares with PyTorch.

Then each runs through ``torch.compile(model, backend="loopwright")``.
Says of each whether it is taken, whether every task was tuned, and how far the compiled model is from PyTorch.
With ``--files``, real ONNX files take their place, which are compared with ONNX Runtime, also in time.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
import tvm
from tvm import relax

import loopwright.torch
from benchmarks.models import files
from benchmarks.models.architectures import ARCHITECTURES, Architecture
from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded, scratch
from loopwright import Client, Job, Model, UnsupportedModel
from loopwright.errors import LoopwrightError
from loopwright.frontends.torch.values import replaced, tensors
from loopwright.results.units import latency

SMOKE = ("--only", "BERT", "--trials", "16")
_MOST_TRIALS = 2048
"""Of a file, whose seconds end the search."""
_LOOP_SECONDS = 2.0
_ROUNDS = 16
"""In one process of each engine: a second one would compile the model once more."""


def add_options(parser: argparse.ArgumentParser) -> None:
    names = [*(one.name for one in ARCHITECTURES), *(file.name for file in files.FILES)]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names)
    parser.add_argument("--trials", type=int, default=64, help="of each model of transformers")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="of wheels with ONNX files")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the job for each file")
    parser.add_argument("--port", type=int, default=8181, help="of the service")


def run(options: argparse.Namespace, raw: Raw) -> None:
    arm = _architectures if options.files is None else _files
    with embedded(options.port) as client:
        arm(client, options, raw)


def _architectures(client: Client, options: argparse.Namespace, raw: Raw) -> None:
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "tvm": tvm.__version__}
    figures: dict[str, Any] = {**versions, "conditions": conditions(), "trials": options.trials, "models": []}
    for one in ARCHITECTURES:
        if options.only is None or one.name in options.only:
            outcome = {"name": one.name, "class": type(one.model()).__name__}
            figures["models"].append(_tried(outcome, partial(compared, client, one, options.trials)))
            print(figures["models"][-1], by_three_clocks(figures["models"][-1]), sep="\n", flush=True)
            raw.append(figures)


def _files(client: Client, options: argparse.Namespace, raw: Raw) -> None:
    """Measure the files that have no result yet."""
    done = {line["file"] for line in raw.lines() if "file" in line}
    with scratch() as folder:
        for file, version, path in files.found(options.files, options.only, folder):
            if file.name not in done:
                outcome = {"file": file.name, "wheel": file.wheel, "version": version, "shapes": dict(file.shapes)}
                outcome |= {"conditions": conditions(), "budget": options.seconds, "limits": "job"}
                model = file.model(path)
                raw.append(_tried(outcome, partial(timed, client, model, file.name, options.seconds)))
                print(raw.lines()[-1], by_three_clocks(raw.lines()[-1]), sep="\n", flush=True)


def _tried(outcome: dict[str, Any], measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what became of one model; ``error`` says why it was not taken, or not tuned."""
    began = time.monotonic()
    try:
        outcome |= measured()
    except (UnsupportedModel, LoopwrightError) as error:
        outcome["error"] = str(error)
    return outcome | {"seconds": time.monotonic() - began}


def compared(client: Client, architecture: Architecture, trials: int) -> dict[str, Any]:
    return tuned(client, architecture, trials) | through_dynamo(client, architecture, trials)


def tuned(client: Client, architecture: Architecture, trials: int) -> dict[str, Any]:
    model, inputs = architecture.model(), architecture.inputs()
    job = client.submit(model, example_inputs=inputs, max_trials=trials, name=architecture.name)
    job.wait(progress=False)
    main = relax.VirtualMachine(client.compile(model, example_inputs=inputs), tvm.cpu())["main"]
    arguments = [tvm.runtime.from_dlpack(tensor.clone()) for tensor in inputs.values()]
    returned = main(*arguments)
    got = returned if isinstance(returned, tvm.ir.Array) else [returned]
    with torch.no_grad():
        expected = tensors(model(**replaced(inputs, {})))
    return _tuning(client, job) | {
        "us": calls_us(partial(main, *arguments)),
        "outputs": len(got),
        "difference": max(
            _distance(torch.from_dlpack(value), right) for value, right in zip(got, expected.values(), strict=True)
        ),
    }


def timed(client: Client, model: Model, name: str, seconds: float) -> dict[str, Any]:
    """Return what became of a file, and the times of its program and of ONNX Runtime, which take turns."""
    job = client.submit(model, max_trials=_MOST_TRIALS, max_seconds=seconds, name=name)
    job.wait(progress=False)
    client.compile(model)
    found = _tuning(client, job)
    assert client.last_report is not None
    if (agreement := client.last_report.agreement) is not None:
        found |= {"difference": agreement.max_rel_error, "special": agreement.special}
    ours, other = client.compare(model, ["ort"], rounds=_ROUNDS, processes=1, progress=False).engines
    return found | {
        "onnxruntime": importlib.metadata.version("onnxruntime"),
        "us": ours.us,
        "failure": ours.failure or other.failure,
        "rival_us": other.us,
        "ratio": other.ratio and [other.ratio.value, other.ratio.low, other.ratio.high],
    }


def calls_us(call: Callable[[], object]) -> float:
    """Return the median time of a call in this process, in a loop, as users call a model."""
    seconds = []
    until = time.monotonic() + _LOOP_SECONDS
    while time.monotonic() < until:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1e6


def by_three_clocks(line: dict[str, Any]) -> str:
    """Return the time of a call in the user's process, and what the service says: its own, and that of the functions.

    A figure in brackets is the time in the process divided by that of the service.
    """
    shown = [f"{line.get('name') or line.get('file')}: in the process {latency(line.get('us'))}"]
    for title, key in (("by the fleet", "model_us"), ("sum of certificates", "sum_us")):
        if line.get("us") and line.get(key):
            shown.append(f"{title} {latency(line[key])} ({line['us'] / line[key]:.2f})")
    return ", ".join(shown)


def _tuning(client: Client, job: Job) -> dict[str, Any]:
    assert client.last_report is not None
    model = job.model
    return {
        "model_us": model and model.measured_us,
        "sum_us": model and model.best_us,
        "state": job.state,
        "job_error": job.error,
        "notes": list(job.info.notes),
        "tasks": [
            {"name": task.name, "certified": task.certified, "trials": task.trials, "error": task.error}
            for task in job.tasks
        ],
        "missing": [function.name for function in client.last_report.misses],
    }


def through_dynamo(client: Client, architecture: Architecture, trials: int) -> dict[str, Any]:
    """Return what became of the graphs of a model, and how far its outputs are from PyTorch's."""
    torch.compiler.reset()
    gc.collect()  # the graphs of the model before
    known = len(loopwright.torch.outcomes())
    model, inputs = architecture.model(), architecture.inputs()
    options = {"client": client, "tune": "wait", "max_trials": trials}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = tensors(model(**replaced(inputs, {})))
        compiled = torch.compile(model, backend="loopwright", options=options)
        for _ in range(3):
            got = tensors(compiled(**replaced(inputs, {})))
    return {
        "graphs": [asdict(outcome) for outcome in loopwright.torch.outcomes()[known:]],
        "graphs_difference": max(_distance(got[name].float(), right.float()) for name, right in expected.items()),
    }


def _distance(value: torch.Tensor, right: torch.Tensor) -> float:
    """Return the largest difference as a share of the largest value."""
    scale = float(right.abs().max())
    return float((value - right).abs().max()) / scale if scale else float(value.abs().max())
