"""Errors of the tuner. Each message says what the user can do."""


class TunerError(Exception):
    """Base of the tuner's errors."""


class InvalidModule(TunerError):
    """The submitted module cannot be taken. Not retried."""


class InvalidTarget(TunerError):
    """The target is unknown to TVM, or of a kind that is not tuned. Not retried."""


class InvalidSpace(TunerError):
    """A user's traces do not apply to the workload. Not retried."""


class UnsupportedVersion(TunerError):
    """The installed TVM is not the one Loopwright is made for. Not retried."""


class NoDevice(TunerError):
    """No live worker builds and measures for the target. Retried when one joins."""


class LeaseLost(TunerError):
    """Another controller owns the job now. This run ends without writing; nothing is retried."""


class RaceFailed(TunerError):
    """The unscheduled program itself cannot be built or run, so that nothing can be proven. Not retried."""
