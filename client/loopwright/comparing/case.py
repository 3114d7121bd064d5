"""The task of all engines of a comparison: a model, its inputs, and the expected outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch
    import tvm

    from loopwright.model import Model

Array = npt.NDArray[Any]


class Case(Protocol):
    """Arrays are NumPy's, so that engines without PyTorch do not load it; bf16, which NumPy lacks, is stored as f32."""

    @property
    def precision(self) -> str:
        """``f64``, ``f32``, ``f16``, ``bf16`` or ``int8``."""

    @property
    def tolerance(self) -> float:
        """See `largest_error`."""

    @property
    def inputs(self) -> list[Array]: ...

    @property
    def expected(self) -> list[Array]: ...

    @property
    def graphs(self) -> Mapping[str, Path]:
        """The model as ONNX files, by the names of how they are written.

        Raises:
            NoForm: there is none.
        """

    def torch_module(self) -> torch.nn.Module:
        """Return the model as a module of PyTorch. Raises NoForm: it has no such form."""

    def torch_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the module is called with, by position and by name."""

    def tvm_inputs(self) -> list[tvm.runtime.Tensor]: ...

    def program(self) -> tuple[Model, Any]:
        """Return the model and the target for `Client.compile`."""


class NoForm(Exception):
    """The model has no form that an engine takes; the message says why, and what to do if anything can be done."""


def largest_error(outputs: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference of an output over the largest magnitude of what is expected for it.

    Raises:
        ValueError: the number or the shapes of the outputs differ.
    """
    shapes, wanted = [each.shape for each in outputs], [each.shape for each in expected]
    if shapes != wanted:
        raise ValueError(f"the outputs have shapes {shapes} instead of {wanted}")
    return max(map(_error, outputs, expected), default=0.0)


def _error(output: Array, expected: Array) -> float:
    if not output.size:
        return 0.0
    mine, wanted = output.astype(np.float64), expected.astype(np.float64)
    # Masked models put infinities in their outputs; there they must be equal.
    finite = np.isfinite(wanted)
    if not np.array_equal(mine[~finite], wanted[~finite], equal_nan=True):
        return float("inf")
    scale = np.abs(wanted[finite]).max(initial=0.0)
    difference = np.abs(mine[finite] - wanted[finite]).max(initial=0.0)
    return float(difference / scale) if scale else float(difference)


def as_arrays(value: Any) -> list[Array]:
    """Return the tensors of PyTorch within an output as arrays."""
    import torch

    leaves = torch.utils._pytree.tree_leaves(value)
    return [
        (leaf.float() if leaf.dtype is torch.bfloat16 else leaf).numpy(force=True)
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    ]
