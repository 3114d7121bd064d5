"""A model that is called with every batch size: a few of them are tuned, and one module takes them all.

.venv/bin/python -m examples.shape_portfolio
"""

from __future__ import annotations

import torch
import tvm
from rich import print as show
from torch import nn
from tvm import relax

import loopwright

LARGEST = 64


def main(client: loopwright.Client, trials: int = 256) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)).eval()
    batch = torch.export.Dim("batch", min=2, max=2 * LARGEST)
    program = torch.export.export(model, (torch.rand(4, 256),), dynamic_shapes=({0: batch},))
    plan = client.plan_shapes(program, {"batch": range(1, LARGEST + 1)}, max_buckets=4)
    show(plan)
    job = client.submit(program, shapes=plan, max_trials=trials, name="every batch size").wait()
    assert job.state == "succeeded", job.error
    main = relax.VirtualMachine(client.compile(program, shapes=plan), tvm.cpu())["main"]
    print(client.last_report)
    for size in (1, 2, 17, LARGEST - 1, LARGEST, LARGEST + 1):  # the last one runs untuned
        x = torch.rand(size, 256)
        torch.testing.assert_close(torch.from_dlpack(main(tvm.runtime.from_dlpack(x))), model(x).detach())


if __name__ == "__main__":
    main(loopwright.Client())
