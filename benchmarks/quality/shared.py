"""What all engines of a case are given: one set of weights, inputs and expected outputs, and one exported graph.

`export` writes a folder once, `Shared` reads it in each engine's process. Arrays are NumPy's, so that engines without
PyTorch do not load it; bf16 values are stored as f32, which represents them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

    from benchmarks.quality.cases.case import Case

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Shared:
    """The folder of one case.

    Attributes:
        case: Name of the case.
        precision: The case's `Precision`, as text.
    """

    folder: Path
    case: str
    precision: str
    tolerance: float

    @property
    def onnx(self) -> Path:
        """The graph in the precision of the case."""
        return self.folder / "model.onnx"

    @property
    def quantised_onnx(self) -> Path:
        """The same with quantised and dequantised tensors, which is how some engines recognise int8 products."""
        return self.folder / "quantised.onnx"

    @property
    def stock_database(self) -> Path:
        """The database of stock MetaSchedule, if it has tuned the case."""
        return self.folder / "stock"

    @cached_property
    def inputs(self) -> list[Array]:
        with np.load(self.folder / "inputs.npz") as arrays:
            return [arrays[name] for name in arrays.files]

    @cached_property
    def reference(self) -> Array:
        """The expected output, computed in double precision (integers: exactly)."""
        return np.load(self.folder / "reference.npy")

    def error(self, output: Array) -> float:
        """Return the largest difference from the reference over the reference's largest magnitude.

        Raises:
            ValueError: The shapes differ.
        """
        if output.shape != self.reference.shape:
            raise ValueError(f"the output has shape {output.shape} instead of {self.reference.shape}")
        difference = np.abs(output.astype(np.float64) - self.reference).max()
        return float(difference / np.abs(self.reference).max())

    def torch_inputs(self) -> tuple[torch.Tensor, ...]:
        """Return the inputs as tensors in PyTorch's own memory, which is aligned to 64 bytes."""
        import torch

        tensors = (torch.from_numpy(array).clone() for array in self.inputs)
        if self.precision == "bf16":
            return tuple(tensor.to(torch.bfloat16) for tensor in tensors)
        return tuple(tensors)

    def torch_module(self) -> torch.nn.Module:
        """Return the module with the shared weights."""
        import torch

        from benchmarks.quality.cases import CASES

        module = CASES[self.case].module()
        module.load_state_dict(torch.load(self.folder / "weights.pt", weights_only=True))
        return module


def as_array(tensor: torch.Tensor) -> Array:
    """Return a tensor as a NumPy array; bf16, which NumPy lacks, as f32."""
    import torch

    array: Array = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy(force=True)
    return array


def of(case: Case, folder: Path) -> Shared:
    """Return the files of a case below ``folder``."""
    return Shared(folder / case.name, case.name, case.precision.value, case.tolerance)
