"""A PyTorch model that stays one: `torch.compile` with Loopwright as its backend.

.venv/bin/python -m examples.torch_compile
"""

from __future__ import annotations

import torch

import loopwright
import loopwright.torch
from examples.transformer import LENGTH, WIDTH, Block


def main(client: loopwright.Client, trials: int = 256) -> None:
    torch.manual_seed(0)
    model = Block().eval()
    # "background", the default, would go on in PyTorch until the job has ended.
    options = {"client": client, "tune": "wait", "max_trials": trials}
    compiled = torch.compile(model, backend="loopwright", options=options)
    with torch.no_grad():
        for length in (LENGTH, 2 * LENGTH):  # each shape is a program of its own
            x = torch.randn(1, length, WIDTH)
            for _ in range(3):
                torch.testing.assert_close(compiled(x), model(x), rtol=1e-3, atol=1e-3)
    for outcome in loopwright.torch.outcomes():
        print(outcome)


if __name__ == "__main__":
    main(loopwright.Client())
