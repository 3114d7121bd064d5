"""A comparison as a client sends it."""

from __future__ import annotations

from typing import Any


def engine(name: str, title: str, us: float | None, ratio: float | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "versions": {title.lower(): "1.0"},
        "setting": None,
        "note": "",
        "us": us,
        "run_secs": [] if us is None else [[us / 1e6]],
        "ratio": ratio and {"value": ratio, "low": ratio * 0.9, "high": ratio * 1.1},
        "error": None if us is None else 1e-6,
        "compile_seconds": None if us is None else 1.5,
        "peak_mb": None,
        "failure": None,
        "install": None,
        **changes,
    }


def comparison(**changes: Any) -> dict[str, Any]:
    return {
        "machine": "A CPU",
        "threads": 2,
        "precision": "f32",
        "tolerance": 1e-3,
        "reference": "PyTorch",
        "engines": [
            engine("loopwright", "Loopwright", 40.0, note="2 of 2 functions tuned"),
            engine("torch", "PyTorch", 80.0, 2.0, setting="contiguous"),
            engine("ort", "ONNX Runtime", None, failure="No module named it", install="pip install onnxruntime"),
        ],
        **changes,
    }
