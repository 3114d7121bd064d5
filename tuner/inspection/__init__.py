"""What the service has TVM do with programs: parse, look up, render. Runs in disposable children."""
