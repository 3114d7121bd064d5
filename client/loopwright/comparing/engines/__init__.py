"""The engines that can be compared with. A module of an engine is imported in that engine's process alone."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from loopwright.comparing.engines.engine import Variants


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine.

    Attributes:
        name: As users type it.
        title: As it is shown.
        module: The module with its `Variants`.
        packages: What its version is: the distributions that its process reports.
        needs: What ``pip install`` takes to run it.
    """

    name: str
    title: str
    module: str
    packages: tuple[str, ...]
    needs: tuple[str, ...]

    def variants(self) -> Variants:
        """Import the engine. Raises ImportError if it is not installed."""
        found: Variants = importlib.import_module(self.module).variants
        return found


_HERE = "loopwright.comparing.engines"
_TVM = ("loopwright[tvm]",)
OURS = EngineInfo("loopwright", "Loopwright", f"{_HERE}.tuned", ("loopwright", "apache-tvm"), _TVM)
PYTORCH = EngineInfo("torch", "PyTorch", f"{_HERE}.eager", ("torch",), ("torch",))
INDUCTOR = EngineInfo("compile", "torch.compile", f"{_HERE}.inductor", ("torch",), ("torch",))
ONNX_RUNTIME = EngineInfo(
    "ort", "ONNX Runtime", f"{_HERE}.onnx_runtime", ("onnxruntime",), ("onnxruntime", "onnx", "onnxscript")
)
OPENVINO = EngineInfo("openvino", "OpenVINO", f"{_HERE}.open_vino", ("openvino",), ("openvino",))
UNTUNED = EngineInfo("tvm", "TVM, untuned", f"{_HERE}.untuned", ("apache-tvm",), _TVM)

RIVALS = {engine.name: engine for engine in (PYTORCH, INDUCTOR, ONNX_RUNTIME, OPENVINO, UNTUNED)}
"""What users would run instead, by name."""
