"""A two-layer perceptron for FashionMNIST's sizes, out of PyTorch and back: three ways in, the same predictions.

.venv/bin/python -m examples.perceptron
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import tvm
from torch import nn
from tvm import relax, topi
from tvm.relax.frontend import nn as relax_nn

import loopwright

BATCH = 64


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear0 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear1(self.relu(self.linear0(x)))


class RelaxPerceptron(relax_nn.Module):
    """The same model in TVM's own front end; its parameters have the names that PyTorch's have."""

    def __init__(self) -> None:
        super().__init__()
        self.linear0 = relax_nn.Linear(784, 128)
        self.relu = relax_nn.ReLU()
        self.linear1 = relax_nn.Linear(128, 10)

    def forward(self, x: relax_nn.Tensor) -> relax_nn.Tensor:
        return self.linear1(self.relu(self.linear0(x)))


def from_graph(graph: torch.fx.GraphModule, shape: tuple[int, ...]) -> tvm.IRModule:
    """An own mapping of an FX graph: each module of PyTorch becomes tensor expressions of TOPI by `emit_te`."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    values: dict[torch.fx.Node, Any] = {}
    with builder.function("main", [x]):
        with builder.dataflow():
            for node in graph.graph.nodes:
                if node.op == "placeholder":
                    values[node] = x
                elif node.op == "call_module":
                    module, (argument,) = graph.get_submodule(node.target), node.args
                    if isinstance(module, nn.Linear):
                        weight, bias = (relax.const(p.detach().numpy()) for p in (module.weight, module.bias))
                        product = builder.emit_te(topi.nn.matmul, values[argument], weight, transpose_b=True)
                        values[node] = builder.emit_te(topi.add, product, bias)
                    elif isinstance(module, nn.ReLU):
                        values[node] = builder.emit_te(topi.nn.relu, values[argument])
                    else:
                        raise NotImplementedError(f"no mapping for {type(module).__name__}")
                elif node.op == "output":
                    out = builder.emit_output(values[node.args[0]])
        builder.emit_func_output(out)
    return builder.get()


def seconds(call: Callable[[], Any]) -> float:
    """Median over runs of twenty calls."""
    return statistics.median(timeit.repeat(call, number=20, repeat=9)) / 20


def main(client: loopwright.Client, trials: int = 128) -> None:
    torch.manual_seed(0)
    model = Perceptron().eval()
    x = torch.rand(BATCH, 784)
    with torch.no_grad():
        expected = model(x)
    weights = {name: tvm.runtime.tensor(value.numpy()) for name, value in model.state_dict().items()}
    # Each way in: the model, what it needs to be understood, its function, and values of that function's parameters.
    ways: list[tuple[str, Any, dict[str, Any], str, dict[str, Any] | None]] = [
        ("torch.export", model, {"example_inputs": (x,)}, "main", None),
        ("FX, own mapping", from_graph(torch.fx.symbolic_trace(model), (BATCH, 784)), {}, "main", None),
        (
            "Relax nn",
            RelaxPerceptron(),
            {"spec": {"forward": {"x": relax_nn.spec.Tensor([BATCH, 784], "float32")}}},
            "forward",
            weights,
        ),
    ]
    inputs = tvm.runtime.from_dlpack(x)  # no copy: TVM reads PyTorch's memory
    untuned = relax.VirtualMachine(tvm.compile(from_graph(torch.fx.symbolic_trace(model), (BATCH, 784))), tvm.cpu())
    for name, way, options, function, params in ways:
        job = client.submit(way, max_trials=trials, name=f"perceptron, {name}", **options).wait()
        assert job.state == "succeeded", job.error
        tuned = relax.VirtualMachine(client.compile(way, params=params, **options), tvm.cpu())[function]
        predictions = torch.from_dlpack(tuned(inputs))  # nor here
        torch.testing.assert_close(predictions, expected, rtol=1e-3, atol=1e-4)
        assert torch.equal(predictions.argmax(1), expected.argmax(1))
        before, now = seconds(partial(untuned["main"], inputs)), seconds(partial(tuned, inputs))
        print(f"{name}: {before * 1e6:.0f} µs untuned, {now * 1e6:.0f} µs tuned: {before / now:.1f}x")


if __name__ == "__main__":
    main(loopwright.Client())
