"""Rechecks: bests that are raced anew when they are old, or when a kernel, a driver or TVM has changed."""
