"""The engines of the benchmark: Loopwright, its rivals, and stock MetaSchedule; by the names in the report."""

from __future__ import annotations

from loopwright.comparing.engines import INDUCTOR, ONNX_RUNTIME, OPENVINO, PYTORCH, EngineInfo
from loopwright.comparing.engines import OURS as LOOPWRIGHT

META_SCHEDULE = EngineInfo(
    "meta_schedule", "MetaSchedule", "benchmarks.quality.meta_schedule", ("apache-tvm",), ("loopwright[tvm]",)
)
OURS, STOCK = LOOPWRIGHT.title, META_SCHEDULE.title
RIVALS = tuple(engine.title for engine in (PYTORCH, INDUCTOR, ONNX_RUNTIME, OPENVINO))
ENGINES = {engine.title: engine for engine in (LOOPWRIGHT, PYTORCH, INDUCTOR, ONNX_RUNTIME, OPENVINO, META_SCHEDULE)}
IN_OUR_ENVIRONMENT = frozenset({OURS, STOCK})
"""The others run in the rivals'."""
