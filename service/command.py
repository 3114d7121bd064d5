"""What people type to run the service: a script of the checkout, or the command of the installed package."""

from __future__ import annotations

from pathlib import Path

_IS_PACKAGE = Path(__file__).resolve().parents[2].name == "loopwright_service"

SERVE = "loopwright-service" if _IS_PACKAGE else "scripts/serve"
"""The whole service."""
ROLE = "loopwright-service" if _IS_PACKAGE else "python -m service"
"""What a role is written behind, as in ``python -m service migrate``."""
