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

from loopwright.comparing.case import Array, NoForm
from loopwright.model import Model

if TYPE_CHECKING:
    import torch
    import tvm

    from benchmarks.quality.cases.case import Case


_QUANTISED_MODELS = ("int8 throughout", "int8 products")
"""Precisions of models that are quantised after they were exported: the PyTorch module is that of float32."""
_QUANTISED = ("int8 between f32", "int4 weights", "int4 weights, int8 rows", *_QUANTISED_MODELS)
"""Precisions of models that are submitted as ONNX files."""


@dataclass(frozen=True)
class Shared:
    """The folder of one case; a `loopwright.comparing.case.Case`.

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
    def graphs(self) -> dict[str, Path]:
        """The ONNX files; those with integer products are written in several ways.

        Without VNNI, ONNX Runtime saturates where weights are of int8: its outputs are refused if they are too far off.
        """
        if self.precision == "int8":
            return {
                "MatMulInteger of uint8 and int8": self.onnx,
                "MatMulInteger of uint8 and uint8": self.unsigned_onnx,
                "quantised": self.quantised_onnx,
            }
        if self.precision in _QUANTISED_MODELS:
            return {"weights of int8": self.onnx, "weights of uint8": self.unsigned_onnx}
        return {"ONNX": self.onnx}

    @property
    def quantised_onnx(self) -> Path:
        """The same with quantised and dequantised tensors, which is how some engines recognise int8 products."""
        return self.folder / "quantised.onnx"

    @property
    def unsigned_onnx(self) -> Path:
        """The same with weights of uint8 and a zero point: what ONNX Runtime computes without saturating anywhere."""
        return self.folder / "unsigned.onnx"

    @property
    def stock_database(self) -> Path:
        """The database of stock MetaSchedule, if it has tuned the case."""
        return self.folder / "stock"

    @cached_property
    def inputs(self) -> list[Array]:
        with np.load(self.folder / "inputs.npz") as arrays:
            found = [arrays[name] for name in arrays.files]
        # Integer products multiply unsigned numbers; the bytes have no sign bit.
        return [array.view(np.uint8) for array in found] if self.precision == "int8" else found

    @cached_property
    def expected(self) -> list[Array]:
        """The expected output, computed in double precision (integers: exactly)."""
        return [np.load(self.folder / "reference.npy")]

    def torch_inputs(self) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]]:
        """Return the inputs as tensors in PyTorch's own memory, which is aligned to 64 bytes."""
        import torch

        tensors = [torch.from_numpy(array).clone() for array in self.inputs]
        kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}
        return tuple(tensor.to(kinds.get(self.precision, tensor.dtype)) for tensor in tensors), {}

    def tvm_inputs(self) -> list[tvm.runtime.Tensor]:
        import torch
        import tvm

        tensors, _ = self.torch_inputs()
        return [
            tvm.runtime.from_dlpack(tensor.view(torch.uint8) if self.precision == "int8" else tensor)
            for tensor in tensors
        ]

    def program(self) -> tuple[Model, str]:
        """Return the model of `Client.submit` and `Client.compile`, and the target.

        The model is the PyTorch module. TVM's importer has no product of integers, so that one is a Relax module;
        models that are quantised within are ONNX files.
        """
        if self.precision in _QUANTISED:
            return Model(str(self.onnx)), "auto"
        if self.precision == "int8":
            weight = self.torch_module().get_buffer("weight").numpy()
            return Model(integer_product(self.inputs[0].shape, weight)), "auto"
        return Model(self.torch_module(), example_inputs=self.torch_inputs()[0]), "auto"

    def torch_module(self) -> torch.nn.Module:
        """Return the module with the shared weights.

        Raises:
            NoForm: the model was quantised after it was exported.
        """
        import torch

        if self.precision in _QUANTISED_MODELS:
            raise NoForm("the model was quantised as an ONNX file")
        from benchmarks.quality.cases import CASES

        module = CASES[self.case].module()
        module.load_state_dict(torch.load(self.folder / "weights.pt", weights_only=True))
        return module


def of(case: Case, folder: Path) -> Shared:
    """Return the files of a case below ``folder``."""
    return Shared(folder / case.name, case.name, case.precision.value, case.tolerance)


def integer_product(shape: tuple[int, ...], weight: Array) -> tvm.IRModule:
    """Return the product of u8 ``[m, k]`` and constant s8 ``[k, n]``, in int32."""
    from tvm import relax, te

    def product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, b.shape[0]), name="k")
        return te.compute(
            (a.shape[0], b.shape[1]),
            lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k),
            name="product",
        )

    builder = relax.BlockBuilder()
    parameter = relax.Var("x", relax.TensorType(shape, "uint8"))
    with builder.function("main", [parameter]):
        builder.emit_func_output(builder.emit_te(product, parameter, relax.const(weight)))
    return builder.get()
