"""When a worker counts as alive, for those who show workers and for those who give them work."""

from __future__ import annotations

LIVE_SECONDS = 20.0
"""A worker that was not seen for so long offers nothing: it has missed three heartbeats."""
