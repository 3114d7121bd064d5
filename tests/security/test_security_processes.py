"""The processes that hold tokens and the database load nothing that works on what users sent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


HOLDERS = (
    "service.app",
    "service.controller.controller",
    "service.controller.job_runner",
    "service.process.supervisor",
    "workers.ray.actors",
    "db",
)


def loaded(unwanted: tuple[str, ...], modules: tuple[str, ...]) -> str:
    """Return what a process has said that imports modules: each after which something unwanted is there."""
    program = f"""
import importlib, sys
for module in {modules}:
    importlib.import_module(module)
    if found := [name for name in {unwanted} if name in sys.modules]:
        print(module, found)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_process_with_secrets_loads_no_tvm() -> None:
    assert loaded(("tvm", "xgboost"), HOLDERS) == ""


def test_the_api_loads_no_ray() -> None:
    """It speaks with the database only, and an idle service is to take little memory."""
    assert loaded(("ray", "numpy"), ("service.app",)) == ""
