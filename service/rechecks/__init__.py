"""Rechecks: bests are raced again when they are old, or when a kernel, a driver or TVM has changed."""
