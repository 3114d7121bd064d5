"""Fakes, a replay runner, and contract tests that every implementation of a port must pass."""
