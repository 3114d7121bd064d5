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
    """All workers of the run are drained, and their work has finished. The run returns its job to the queue."""


class LeaseLost(TunerError):
    """Another run owns the job or tunes the task now. This run ends without writing; nothing is retried."""


class RaceFailed(TunerError):
    """The unscheduled program itself cannot be built or run, so no schedule can be certified. Not retried."""


class SearchFailed(TunerError):
    """The search of a task takes too much time or memory, or crashed. Not retried; other tasks continue."""
