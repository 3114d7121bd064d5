"""The engines, one a file: each loads the same weights, and makes tokens."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.decode.weights import BITS


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine.

    Attributes:
        title: As it is shown.
        module: The module with its function ``load``.
        packages: What its version is.
        precisions: Those of weights that it can have.
        variant: As in `engine.Given`.
    """

    title: str
    module: str
    packages: tuple[str, ...]
    precisions: tuple[str, ...] = tuple(BITS)
    variant: str = ""


_QUANTISED = ("int8", "int4")
_OURS = "benchmarks.decode.engines.ours", ("apache-tvm", "transformers")
OURS = (EngineInfo("Loopwright", *_OURS), EngineInfo("Loopwright, int8 rows", *_OURS, _QUANTISED, "int8 rows"))
"""They run in the environment of the benchmark, and have a search each."""
_OPENVINO = "benchmarks.decode.engines.open_vino"
_PYTORCH, _ORT = "benchmarks.decode.engines.pytorch", "benchmarks.decode.engines.onnx_runtime"
RIVALS = (
    EngineInfo("PyTorch", _PYTORCH, ("torch", "transformers"), ("float32",)),
    EngineInfo("torch.compile", _PYTORCH, ("torch", "transformers"), ("float32",), "compiled"),
    EngineInfo("torchao", _PYTORCH, ("torch", "torchao", "transformers"), ("int8",), "compiled"),
    EngineInfo("ONNX Runtime", _ORT, ("onnxruntime",)),
    EngineInfo("ONNX Runtime, int8 rows", _ORT, ("onnxruntime",), _QUANTISED, "int8 rows"),
    EngineInfo("OpenVINO", _OPENVINO, ("openvino",)),
    EngineInfo("OpenVINO, int8 rows", _OPENVINO, ("openvino",), _QUANTISED, "int8 rows"),
    EngineInfo("llama.cpp", "benchmarks.decode.engines.llama_cpp", ("llama-cpp-python",)),
)
"""They run in the rivals' environment."""
