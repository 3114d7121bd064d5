"""A small transformer block, captured by `torch.export`.

.venv/bin/python -m examples.transformer
"""

from __future__ import annotations

import torch
import tvm
from torch import nn
from torch.nn import functional
from tvm import relax

import loopwright

WIDTH, HEADS, LENGTH = 128, 4, 32


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a normalisation and beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, dim=-1)
        x = x + self.out((attention @ v).transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def main(client: loopwright.Client, trials: int = 256) -> None:
    torch.manual_seed(0)
    model = Block().eval()
    x = torch.randn(1, LENGTH, WIDTH)
    exported = torch.export.export(model, (x,))
    job = client.submit(exported, max_trials=trials, name="transformer block").wait()
    assert job.state == "succeeded", job.error
    machine = relax.VirtualMachine(client.compile(exported), tvm.cpu())
    with torch.no_grad():
        expected = model(x)
    got = torch.from_dlpack(machine["main"](tvm.runtime.from_dlpack(x)))
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    print(client.last_report)


if __name__ == "__main__":
    main(loopwright.Client())
