"""What a user of Loopwright submits for a case."""

from __future__ import annotations

import tvm
from tvm import relax, te

from benchmarks.quality.shared import Shared
from loopwright import Model


def program(shared: Shared) -> Model:
    """Return the model for `Client.submit` and `Client.compile`.

    The model is the PyTorch module; TVM's importer has no product of integers, so that one is a Relax module.
    """
    if shared.precision == "int8":
        return Model(_integer_product(shared))
    return Model(shared.torch_module(), example_inputs=shared.torch_inputs()[0])


def _integer_product(shared: Shared) -> tvm.IRModule:
    """Return the product of u8 ``[m, k]`` and constant s8 ``[k, n]``, in int32."""
    (x,), weight = shared.inputs, shared.torch_module().get_buffer("weight").numpy()

    def product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, b.shape[0]), name="k")
        return te.compute(
            (a.shape[0], b.shape[1]),
            lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k),
            name="product",
        )

    builder = relax.BlockBuilder()
    parameter = relax.Var("x", relax.TensorType(x.shape, "uint8"))
    with builder.function("main", [parameter]):
        builder.emit_func_output(builder.emit_te(product, parameter, relax.const(weight)))
    return builder.get()
