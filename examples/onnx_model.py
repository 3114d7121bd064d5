"""An ONNX model, from its file: tuned, compiled, and compared with ONNX's own reference.

.venv/bin/python -m examples.onnx_model
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tvm import relax

import loopwright


def small_network() -> onnx.ModelProto:
    """Convolution, relu, pooling, and a linear layer."""
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.standard_normal((8, 3, 3, 3), dtype="float32"),
        "b": generator.standard_normal(8, dtype="float32"),
        "v": generator.standard_normal((8, 10), dtype="float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def main(client: loopwright.Client, trials: int = 96) -> None:
    model = small_network()
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32), dtype="float32")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.onnx"
        onnx.save(model, path)
        job = client.submit(path, max_trials=trials, name="small ONNX network").wait()
        assert job.state == "succeeded", job.error
        machine = relax.VirtualMachine(client.compile(path), tvm.cpu())
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(x)).numpy(), expected, rtol=1e-3, atol=1e-3)
    print(client.last_report)


if __name__ == "__main__":
    main(loopwright.Client())
