"""Programs with their best schedules: looked up, applied, compiled, written. Needs TVM."""
