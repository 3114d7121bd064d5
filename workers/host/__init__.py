"""A machine that joins the fleet: ``python -m workers.host``, by ``scripts/worker`` or ``loopwright worker start``."""
