"""Errors of the tuner. Each message says what the user can do.

A module, a target or a version that cannot be used raises an error of `loopwright.codegen.errors`.
"""


class TunerError(Exception):
    """Base of the tuner's errors."""


class InvalidSpace(TunerError):
    """A user's traces do not apply to the workload. Not retried."""


class NoDevice(TunerError):
    """No live worker builds and measures for the target. Retried when one joins."""


class FleetDrained(TunerError):
    """All workers of the run are to get no more work. What they had has ended; the run gives its job back."""


class LeaseLost(TunerError):
    """Somebody else owns the job or tunes the task now. This run ends without writing; nothing is retried."""


class RaceFailed(TunerError):
    """The unscheduled program itself cannot be built or run, so that nothing can be proven. Not retried."""


class SearchFailed(TunerError):
    """The search of a task takes too much time or memory, or crashed. Not retried; other tasks go on."""
