"""Shared by endpoints: limits, feeds of events, sandboxed children, metrics, the schema."""
