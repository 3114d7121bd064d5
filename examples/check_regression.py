"""A gate for CI: has a change made a model slower than its reference?

.venv/bin/python -m examples.check_regression
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import nn

import loopwright


def model(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, width), nn.GELU(), nn.Linear(width, 16)).eval()


def main(client: loopwright.Client, trials: int = 64) -> None:
    inputs = (torch.randn(8, 128),)
    # What the main branch has. Its name is what later checks refer to.
    reference = client.submit(model(64), example_inputs=inputs, max_trials=trials, name="main").wait()
    assert reference.state == "succeeded", reference.error

    # The same model: the same programs, nothing is measured.
    same = client.check(model(64), "main", example_inputs=inputs, max_trials=trials)
    assert same.passed
    assert same.result.rounds == 0

    # A layer of sixteen times the width: its functions are tuned, and raced with the reference's.
    wider = client.check(model(1024), reference, example_inputs=inputs, max_trials=trials)
    print(wider.markdown())
    assert not wider.passed
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "junit.xml").write_text(wider.junit())
        wider.record(Path(folder) / "reference.json")  # once the change is accepted


if __name__ == "__main__":
    main(loopwright.Client())
