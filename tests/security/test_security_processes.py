"""The processes that hold tokens and the database load nothing that works on what users sent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "module",
    ["service.app", "service.controller", "service.job_runner", "service.supervisor", "workers.actors", "db"],
)
def test_a_process_with_secrets_loads_no_tvm(module: str) -> None:
    program = f"import sys, {module}; print([name for name in ('tvm', 'xgboost') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_api_loads_no_ray() -> None:
    """It speaks with the database only, and an idle service is to take little memory."""
    program = "import sys, service.app; print([name for name in ('ray', 'numpy') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
