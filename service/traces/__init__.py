"""Traces in the format of OpenTelemetry, for whoever configures where they go; nothing of it is imported otherwise."""
