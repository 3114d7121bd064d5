"""Submits tiny models of many architectures to the embedded service, compiles them, and compares with PyTorch.

Then each runs through ``torch.compile(model, backend="loopwright")``.
Says of each whether it is taken, whether every task was tuned, and how far the compiled model is from PyTorch.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from dataclasses import asdict
from typing import Any

import torch
import transformers
import tvm
from tvm import relax

import loopwright.torch
from benchmarks.models.architectures import ARCHITECTURES, Architecture
from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded
from loopwright import Client, UnsupportedModel
from loopwright.errors import LoopwrightError
from loopwright.frontends.torch.values import replaced, tensors

SMOKE = ("--only", "BERT", "--trials", "16")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[one.name for one in ARCHITECTURES])
    parser.add_argument("--trials", type=int, default=64, help="of each model")
    parser.add_argument("--port", type=int, default=8181, help="of the service")


def run(options: argparse.Namespace, raw: Raw) -> None:
    chosen = [one for one in ARCHITECTURES if options.only is None or one.name in options.only]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "tvm": tvm.__version__}
    figures: dict[str, Any] = {**versions, "conditions": conditions(), "trials": options.trials, "models": []}
    with embedded(options.port) as client:
        for architecture in chosen:
            figures["models"].append(tried(client, architecture, options.trials))
            print(figures["models"][-1], flush=True)
            raw.replace(figures)


def tried(client: Client, architecture: Architecture, trials: int) -> dict[str, Any]:
    """Return what became of one model; ``error`` says why it was not taken, or not tuned."""
    outcome: dict[str, Any] = {"name": architecture.name, "class": type(architecture.model()).__name__}
    began = time.monotonic()
    try:
        outcome |= tuned(client, architecture, trials)
        outcome |= through_dynamo(client, architecture, trials)
    except (UnsupportedModel, LoopwrightError) as error:
        outcome["error"] = str(error)
    return outcome | {"seconds": time.monotonic() - began}


def tuned(client: Client, architecture: Architecture, trials: int) -> dict[str, Any]:
    model, inputs = architecture.model(), architecture.inputs()
    job = client.submit(model, example_inputs=inputs, max_trials=trials, name=architecture.name)
    job.wait(progress=False)
    machine = relax.VirtualMachine(client.compile(model, example_inputs=inputs), tvm.cpu())
    assert client.last_report is not None
    returned = machine["main"](*(tvm.runtime.from_dlpack(tensor.clone()) for tensor in inputs.values()))
    got = returned if isinstance(returned, tvm.ir.Array) else [returned]
    with torch.no_grad():
        expected = tensors(model(**replaced(inputs, {})))
    return {
        "state": job.state,
        "job_error": job.error,
        "notes": list(job.info.notes),
        "tasks": [
            {"name": task.name, "certified": task.certified, "trials": task.trials, "error": task.error}
            for task in job.tasks
        ],
        "missing": [function.name for function in client.last_report.misses],
        "outputs": len(got),
        "difference": max(
            _distance(torch.from_dlpack(value), right) for value, right in zip(got, expected.values(), strict=True)
        ),
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
