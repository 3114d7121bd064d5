"""A model to ship: a folder that runs without Loopwright and TVM's compiler, and proves itself where it lies.

.venv/bin/python -m examples.package_model
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import loopwright
from examples.transformer import LENGTH, WIDTH, Block

SERVE = """
import numpy as np
from load import load              # it lies in the folder
model = load()
print(model.manifest["name"], model(np.ones((1, {length}, {width}), dtype="float32")).shape)
"""


def main(client: loopwright.Client, trials: int = 256) -> None:
    torch.manual_seed(0)
    model, inputs = Block().eval(), (torch.randn(1, LENGTH, WIDTH),)
    job = client.submit(model, example_inputs=inputs, max_trials=trials, name="transformer block").wait()
    assert job.state == "succeeded", job.error
    with tempfile.TemporaryDirectory() as scratch:
        folder = client.package(model, Path(scratch) / "block", example_inputs=inputs)
        print(f"{sum(file.stat().st_size for file in folder.rglob('*')) / 2**20:.1f} MiB")

        # On the machine where it is to run: are the results right, and is it as fast as certified?
        verification = loopwright.verify(folder)
        for function in verification.functions:
            print(function.name, function.state, function.us, function.certified_us)
        assert verification.model.state == "holds", verification.model.reason

        script = SERVE.format(length=LENGTH, width=WIDTH)
        subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)


if __name__ == "__main__":
    main(loopwright.Client())
