"""Bodies of requests: received within limits, and parsed off the event loop."""
