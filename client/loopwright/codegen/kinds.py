"""Closed sets of words that several rooms share, on the wire and in the database. Imports no TVM."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTLY = "partly"
    """Each task has a result, but no candidate of the task that takes most of the model's time has run."""
    FAILED = "failed"
    CANCELLED = "cancelled"


class Values(StrEnum):
    """Values that an argument of a function may have in a test."""

    ANY = "any"
    NUMBER = "number"
    """Any but NaN."""
    INDEX = "index"
    """Within the axes of the arguments."""
    NONZERO = "nonzero"
    SMALL = "small"
    """Any but NaN, with small sums: a state is multiplied by them in each step, and rounding errors must not grow."""


class SignedBy(StrEnum):
    """Whose key has signed a certificate that came from outside."""

    SERVICE = "this service"
    OTHER = "another deployment"
    REVOKED = "a revoked key"
    """Of this service; anybody may have signed it."""


class TaskState(StrEnum):
    """The state of a task."""

    QUEUED = "queued"
    RUNNING = "running"
    JOINED = "joined"
    """Another job is tuning the same; its answer is this task's, too."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINISHED: frozenset[str] = frozenset({"succeeded", "partly", "failed", "cancelled"})
"""States that a job never leaves."""
FINISHED_TASK: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})
"""States that a task never leaves."""


class AnsweredFrom(StrEnum):
    """Where the result of a task came from."""

    SEARCH = "search"
    DATABASE = "database"
    JOINED = "joined"


class TrialState(StrEnum):
    """The state of a trial."""

    PROPOSED = "proposed"
    MEASURED = "measured"
    FAILED = "failed"


class Origin(StrEnum):
    """Where a candidate came from."""

    BASELINE = "baseline"
    SEED = "seed"
    """A starting point that a rule of the space gives by analysis."""
    RANDOM = "random"
    MUTATION = "mutation"
    TRANSFER = "transfer"
    IMPORT = "import"
    """Measured elsewhere and imported; no search proposes it."""


class Predictor(StrEnum):
    """The model whose score selected a candidate. Scores of different models cannot be compared."""

    RANKING = "ranking"
    """XGBoost, which ranks programs of all tasks by their features."""
    GAUSSIAN_PROCESS = "gaussian_process"
    """Over the decisions of one task, from its own trials."""


class Lane(StrEnum):
    """The kind of work in a slice of a timeline."""

    PROPOSE = "propose"
    BUILD = "build"
    MEASURE = "measure"


class Stage(StrEnum):
    """Where on its way a candidate failed."""

    BUILD = "build"
    RUN = "run"
    CERTIFY = "certify"


class FailureKind(StrEnum):
    """Why a trial has no latency. Only ``DEVICE_LOST`` and ``KILLED`` are retried."""

    COMPILE = "COMPILE"
    TIMEOUT = "TIMEOUT"
    CRASH = "CRASH"
    WRONG_RESULT = "WRONG_RESULT"
    DEVICE_LOST = "DEVICE_LOST"
    """A process that works for many candidates, or its machine, was lost."""
    KILLED = "KILLED"
    """The candidate's own process was killed from outside while it built or ran this candidate. As the outcome of a
    trial: twice, and no job of the device class tries the candidate again."""


class Grade(StrEnum):
    """How sure the speedup of a certificate is."""

    CLEAN = "clean"
    """The ends of the interval are within 5 % of the speedup."""
    NOISY = "noisy"
    """The schedule is faster than the baseline, and an end of the interval is farther away."""
    INCONCLUSIVE = "inconclusive"
    """The interval contains 1: the rounds do not show that the schedule is faster than the baseline."""


class SandboxLevel(StrEnum):
    """The sandbox of a process that runs submitted code, from strong to weak.

    Every level but ``none`` refuses dangerous system calls.
    """

    NAMESPACES = "namespaces"
    """A file system, processes, network and memory of its own."""
    LANDLOCK = "landlock"
    """The machine's file system, of which only named parts can be opened. What containers allow."""
    NONE = "none"


class ThrottleReason(StrEnum):
    """Why the clocks of a GPU are below their maximum, as NVML reports it."""

    POWER_CAP = "power_cap"
    TEMPERATURE = "temperature"
    HARDWARE_SLOWDOWN = "hardware_slowdown"
    """The hardware halves the clocks, or lowers them further; the two that follow say why."""
    HARDWARE_TEMPERATURE = "hardware_temperature"
    POWER_BRAKE = "power_brake"
    """The power supply asks for less."""
    CLOCK_SETTING = "clock_setting"
    """An operator limited the clocks."""
    DISPLAY_CLOCK_SETTING = "display_clock_setting"
    SYNC_BOOST = "sync_boost"
    """The GPUs of its group have the same clocks."""
    OTHER = "other"
    """A reason that is not known here."""

    @classmethod
    def _missing_(cls, value: object) -> ThrottleReason:
        return cls.OTHER


class GateVerdict(StrEnum):
    """The verdict of a race with a reference."""

    PASSED = "no regression"
    REGRESSION = "regression"
    UNCLEAR = "unclear"
    """After all rounds, neither was shown."""


class Change(StrEnum):
    """The change of a function between the reference and the candidate."""

    SAME = "same"
    """The same program: nothing was measured."""
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    FAILED = "failed"
    """It does not run, or computes a wrong result."""


class RecheckVerdict(StrEnum):
    """The verdict of a race of a certified best with its certificate."""

    HOLDS = "holds"
    REGRESSION = "regression"
    FAILED = "failed"
    """It no longer runs, or computes a wrong result."""
    UNCLEAR = "unclear"
    """Neither was shown, or there was nothing to compare with."""

    @property
    def holds(self) -> bool | None:
        """Return whether the certificate holds; None if it is unknown."""
        return None if self is RecheckVerdict.UNCLEAR else self is RecheckVerdict.HOLDS


class LoopBound(StrEnum):
    """What limits the iterations of a loop in a static model."""

    ARITHMETIC = "arithmetic"
    LOADS = "loads"
    STORES = "stores"
    SHUFFLES = "shuffles"
    INSTRUCTIONS = "instructions"
    """The number of all instructions."""
    LATENCY = "latency"
    """Sums that wait for one another, since too few of them are independent."""


class TokenKind(StrEnum):
    """The kind of bearer that a token has."""

    OWNER = "owner"
    """The token in a service's data directory."""
    TOKEN = "token"
    SESSION = "session"
    """A signed-in browser."""
    GUEST = "guest"
    """A link for people without an account."""
    CODE = "code"
    """Can be exchanged once, for a session."""
