"""Loopwright as a user calls it: ``Client.compile``, and TVM's virtual machine on memory shared with PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import tvm
from tvm import relax

import loopwright
from benchmarks.quality.engines.engine import Prepare, Prepared
from benchmarks.quality.programs import program
from benchmarks.quality.shared import Array, Shared, as_array


def variants(shared: Shared, threads: int) -> Iterator[tuple[str, Prepare]]:
    """Yield the one way: the number of threads is for `Client.compile` to choose."""
    yield "compile", lambda: _prepared(shared)


def _prepared(shared: Shared) -> Prepared:
    with loopwright.Client() as client:
        model, example_inputs = program(shared)
        compiled = client.compile(model, example_inputs=example_inputs)
        report = client.last_report
    assert report is not None
    return on_virtual_machine(compiled, shared, f"{len(report.hits)} of {len(report.functions)} functions tuned")


def on_virtual_machine(compiled: relax.VMExecutable, shared: Shared, note: str) -> Prepared:
    """Return a compiled Relax module, on inputs that share PyTorch's memory."""
    tensors = shared.torch_inputs()
    if shared.precision == "int8":
        tensors = tuple(tensor.view(torch.uint8) for tensor in tensors)
    inputs = [tvm.runtime.from_dlpack(tensor) for tensor in tensors]
    main = relax.VirtualMachine(compiled, tvm.cpu())["main"]

    def call() -> tvm.runtime.Tensor:
        return main(*inputs)

    def output() -> Array:
        return as_array(torch.from_dlpack(call()))

    return Prepared(call, output, note)
