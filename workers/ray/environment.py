"""Loopwright's defaults in the environment of Ray's processes; what the operator has set stays."""

from __future__ import annotations

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Metrics would cost cores that are timed.
    "RAY_enable_metrics_collection": "0",
    # Ray runs its workers at a low priority; a timing must not give way to whatever else runs.
    "RAY_worker_niceness": "0",
}
PATIENT = {
    # Seconds that a start waits for the port of its GCS, and for its first answer; Ray's defaults are 30 and 20.
    "RAY_gcs_server_port_wait_time_s": "300",
}
ROTATION = {
    # Of each of Ray's processes; Ray's own limit is 3 GiB each.
    "RAY_ROTATION_MAX_BYTES": str(10 * 2**20),
    "RAY_ROTATION_BACKUP_COUNT": "3",
}
LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Have Ray bind its servers to loopback, and reach those of a cluster that did.

Ray does so if it is told to be no cluster, and in no other way: else it replaces an address of loopback by one that
others can reach."""


def is_loopback(address: str) -> bool:
    """Return whether an address ``HOST:PORT`` is of loopback."""
    return address.startswith("127.0.0.1:")
