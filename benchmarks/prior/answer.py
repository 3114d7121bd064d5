"""Prints the seconds of an instant answer for a model as JSON. The process has loaded the libraries, and no more."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.quality.cases import models
from loopwright import Client, Model, frontends
from loopwright.applying.assembling import assembled
from loopwright.applying.instant import predicted
from loopwright.applying.lookup import LookedUp, lower
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program.built_functions import BuiltFunctions

_MODELS = {"BERT": (models.bert, (1, 128, 768)), "ResNet-18": (models.resnet18, (1, 3, 224, 224))}
_NOWHERE = "http://127.0.0.1:9"
"""No service answers here."""


def main() -> None:
    make, shape = _MODELS[sys.argv[1]]
    torch.manual_seed(0)
    model = Model(make().eval(), example_inputs=(torch.rand(shape),))
    Client(_NOWHERE).compile(torch.nn.ReLU().eval(), example_inputs=(torch.rand(4),), tune="instant")
    target = this_cpu()
    folder = Path(tempfile.mkdtemp()) / "functions"
    functions = BuiltFunctions(folder)
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    program = frontends.to_program(model)
    mark()
    lowered = lower(program, target)
    mark()
    looked_up = predicted(LookedUp(lowered, target, {}), functions)
    mark()
    _, report = assembled(looked_up, functions)
    mark()
    lowered = lower(program, target)
    mark()
    assembled(LookedUp(lowered, target, {}, looked_up.predictions), BuiltFunctions(folder))  # as of another process
    mark()
    steps = [after - before for before, after in itertools.pairwise(marks)]
    names = ("export", "lower", "predict", "build", "lower again", "build again")
    counts = {"functions": len(report.functions), "predicted": len(report.predictions)}
    shutil.rmtree(folder.parent)
    print(json.dumps(dict(zip(names, steps, strict=True)) | counts))


if __name__ == "__main__":
    main()
