"""ResNet-18 (He et al., CVPR 2016) in plain PyTorch, random weights: tuned within a time limit, and measured.

.venv/bin/python -m examples.resnet18 --minutes 10
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

import loopwright


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, 1))
        inputs = 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
            inputs = outputs
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def milliseconds(call: Callable[[], Any], rounds: int = 10) -> float:
    call()
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples) * 1e3


def main(client: loopwright.Client, seconds: float = 600, size: int = 224) -> None:
    torch.manual_seed(0)
    model = ResNet18().eval()
    for norm in (module for module in model.modules() if isinstance(module, nn.BatchNorm2d)):
        # As if it had been trained: at its start a normalisation of inference does nothing.
        nn.init.uniform_(norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
    x = torch.rand(1, 3, size, size)
    with torch.no_grad():
        expected = model(x)

    job = client.submit(model, example_inputs=(x,), max_trials=100_000, max_seconds=seconds, name="resnet18").wait()
    assert job.state == "succeeded", job.error
    tuned = relax.VirtualMachine(client.compile(model, example_inputs=(x,)), tvm.cpu())
    exported = from_exported_program(torch.export.export(model, (x,)), unwrap_unit_return_tuple=True)
    untuned = relax.VirtualMachine(tvm.compile(exported, target=tvm.target.Target(job.info.target)), tvm.cpu())

    inputs = tvm.runtime.from_dlpack(x)
    got = torch.from_dlpack(tuned["main"](inputs))
    torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)
    assert got.argmax() == expected.argmax()
    with torch.inference_mode():
        print(f"PyTorch      {milliseconds(lambda: model(x)):8.2f} ms")
    print(f"TVM, untuned {milliseconds(lambda: untuned['main'](inputs)):8.2f} ms")
    print(f"Loopwright   {milliseconds(lambda: tuned['main'](inputs)):8.2f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    main(loopwright.Client(), 60 * parser.parse_args().minutes)
