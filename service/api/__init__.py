"""What endpoints share: limits, feeds of events, sandboxed children, metrics, the schema."""
