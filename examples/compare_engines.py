"""Is it worth it? A tuned model beside PyTorch, torch.compile, ONNX Runtime and OpenVINO, on this machine.

.venv/bin/python -m examples.compare_engines
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich import print
from torch import nn

import loopwright
from examples.transformer import LENGTH, WIDTH, Block


def main(
    client: loopwright.Client,
    trials: int = 256,
    against: Sequence[str] = ("torch", "compile", "ort", "openvino"),
    rounds: int = 8,
) -> None:
    torch.manual_seed(0)
    model: nn.Module = Block().eval()
    inputs = (torch.randn(1, LENGTH, WIDTH),)
    job = client.submit(model, example_inputs=inputs, max_trials=trials, name="transformer block").wait()
    assert job.model is not None, job.error
    print(f"the functions take {job.model.best_us:.0f} µs together, {job.model.baseline_us:.0f} µs untuned")

    # Each engine in a process of its own, in turn with the others; the job's page shows the table, too.
    comparison = client.compare(model, against, example_inputs=inputs, rounds=rounds, job=job)
    print(comparison)
    for engine in comparison.engines[1:]:
        if engine.ratio is not None and engine.ratio.low > 1:
            print(f"faster than {engine.title} by {engine.ratio.value:.2f}")


if __name__ == "__main__":
    main(loopwright.Client())
