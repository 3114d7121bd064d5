"""The engines of the benchmark. A module of an engine is imported in that engine's process alone."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from benchmarks.quality.engines.engine import Variants


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine by the name in the report.

    Attributes:
        module: The file in this folder with its `Variants`.
        packages: What its version is: the distributions that its process reports.
        is_rival: Whether it is what a user would run instead.
        is_ours: Whether its process needs Loopwright's environment; the others run in the rivals'.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    is_rival: bool = True
    is_ours: bool = False

    def variants(self) -> Variants:
        """Import the engine. Raises ImportError if it is not installed."""
        found: Variants = importlib.import_module(f"benchmarks.quality.engines.{self.module}").variants
        return found


OURS = "Loopwright"
STOCK = "MetaSchedule"
ENGINES = {
    engine.name: engine
    for engine in (
        EngineInfo(OURS, "loopwright_compile", ("loopwright", "apache-tvm"), is_rival=False, is_ours=True),
        EngineInfo("PyTorch", "eager", ("torch",)),
        EngineInfo("torch.compile", "inductor", ("torch",)),
        EngineInfo("ONNX Runtime", "onnx_runtime", ("onnxruntime",)),
        EngineInfo("OpenVINO", "open_vino", ("openvino",)),
        EngineInfo(STOCK, "meta_schedule", ("apache-tvm",), is_rival=False, is_ours=True),
    )
}
RIVALS = tuple(engine.name for engine in ENGINES.values() if engine.is_rival)
