"""TVM's work on programs for the service: parse, look up, render. Runs in disposable children."""
