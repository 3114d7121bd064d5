"""A compiled model that keeps state from call to call, in buffers that its program takes and returns. Needs TVM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import tvm
from tvm import relax
from tvm.target import Target

from loopwright.packaging.load import as_tensor, like


class StatefulModel:
    """A compiled model with its buffers: what `Client.compile` returns with ``state="functional"``.

    Call it with the model's inputs, in order: tensors of PyTorch or TVM, or anything else with DLPack. It returns what
    the inputs are: tensors of PyTorch or TVM, or arrays of NumPy; several as a tuple. Each call passes the buffers to
    the program, and keeps their new values. Two threads must not call it at once.
    """

    def __init__(self, executable: Any, buffers: Mapping[str, Any], target: Target) -> None:
        """Keep copies of the buffers on the target's device.

        Args:
            executable: a ``relax.VMExecutable``, whose ``main`` takes the buffers behind its inputs, and returns their
                new values behind its outputs.
            buffers: the values before the first call, ``tvm.runtime.Tensor`` by name, in the order of ``main``.
            target: what it was compiled for.
        """
        self.executable = executable
        """The program itself, which `loopwright.export_library` writes: ``main(inputs…, buffers…)``."""
        self._initial = dict(buffers)
        self._device = tvm.cpu() if target.kind.name == "llvm" else tvm.device(target.kind.name)
        self.reset()

    @property
    def buffers(self) -> dict[str, Any]:
        """The values of the buffers by name: arrays of NumPy, copies that later calls do not change."""
        return {name: tensor.numpy() for name, tensor in self._buffers.items()}

    def reset(self) -> None:
        """Give the buffers the values that they had in the model when it was compiled."""
        self._buffers = {name: tensor.copyto(self._device) for name, tensor in self._initial.items()}

    def __call__(self, *inputs: Any) -> Any:
        arguments = [*map(self._placed, inputs), *self._buffers.values()]
        results = self._main(*arguments)
        results = (results,) if isinstance(results, tvm.runtime.Tensor) else tuple(results)
        count = len(results) - len(self._buffers)
        outputs = results[:count]
        memory = {argument.data_ptr() for argument in arguments}
        # An input that becomes a buffer is the caller's memory.
        new = [each.copyto(self._device) if each.data_ptr() in memory else each for each in results[count:]]
        self._buffers = dict(zip(self._buffers, new, strict=True))
        returned = outputs[0] if len(outputs) == 1 else outputs
        return returned if all(isinstance(each, tvm.runtime.Tensor) for each in inputs) else like(returned, inputs)

    @cached_property
    def _main(self) -> Any:
        return relax.VirtualMachine(self.executable, self._device)["main"]

    def _placed(self, value: Any) -> Any:
        tensor = as_tensor(value)
        return tensor if tensor.device == self._device else tensor.copyto(self._device)
