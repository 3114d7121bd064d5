"""Traces in the format of OpenTelemetry, if a collector is configured. Otherwise no package for traces is imported."""
