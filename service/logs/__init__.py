"""The logs of all parts of the service: one line per fact, on stderr."""
