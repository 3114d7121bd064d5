"""Metrics for Prometheus: figures of the fleet, from the database, and figures of this process."""
