"""Programs that a runner holds: built artifacts, loaded and called on a device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tvm

from workers.device.arguments import to_device
from workers.device.build import FUNCTION, load, with_packed_weight
from workers.device.runner import Action, Mailbox
from workers.messages import Artifact


class BuiltPrograms:
    """Artifacts by their positions, on one device.

    ``functions`` are the artifacts of each function with the mailbox of its arguments; positions go through all of
    them.
    """

    name = ""

    def __init__(self, functions: Sequence[tuple[Mailbox, Sequence[Artifact]]], device: tvm.runtime.Device) -> None:
        self._artifacts = [(artifact, mailbox) for mailbox, artifacts in functions for artifact in artifacts]
        self._device = device
        self._modules: dict[int, tvm.runtime.Module] = {}
        self._kept: list[Any] = []
        self._calls: dict[int, Calls] = {}

    def do(self, action: Action, position: int, number: int) -> float:
        artifact, mailbox = self._artifacts[position]
        match action:
            case Action.LOAD:
                self._modules[position] = module = load(artifact)
                module[FUNCTION]  # resolves the function now, so that this does not disturb a timing
            case Action.RUN:
                mailbox.write(called(self._modules[position], artifact, mailbox.arrays, self._device))
            case Action.KEEP:
                self._calls.clear()  # of the function before
                self._kept = to_device(mailbox.arrays, self._device)
            case Action.BIND:
                module = self._modules[position]
                arguments = with_packed_weight(module, artifact, self._kept, self._device)
                self._calls[position] = Calls(module, self._device, arguments)
            case Action.TIME:
                calls = self._calls[position]
                return calls.mean(number) if number else calls.cold()
        return 0.0


class Calls:
    """Timed calls of a loaded program, in seconds."""

    def __init__(self, module: tvm.runtime.Module, device: tvm.runtime.Device, arguments: Sequence[Any]) -> None:
        self._module = module
        self._device = device
        self._arguments = arguments

    def cold(self) -> float:
        """Time one call, with cold caches and threads."""
        function = self._module[FUNCTION]
        self._device.sync()
        started = time.perf_counter()
        function(*self._arguments)
        self._device.sync()
        return time.perf_counter() - started

    def mean(self, number: int) -> float:
        """Return the mean of ``number`` calls after one call that does not count."""
        timer = self._module.time_evaluator(FUNCTION, self._device, number=number, repeat=1)
        return float(timer(*self._arguments).results[0])


def called(
    module: tvm.runtime.Module, artifact: Artifact, inputs: Sequence[Any], device: tvm.runtime.Device
) -> list[Any]:
    """Call a loaded artifact on host arrays, and return all of them as it left them."""
    arguments = to_device(inputs, device)
    module[FUNCTION](*with_packed_weight(module, artifact, arguments, device))
    device.sync()
    return [argument.numpy() for argument in arguments]
