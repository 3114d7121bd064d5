"""The tuning loop's ports. `workers` and `db` implement them, `tuner.testing` has the contract tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from loopwright.codegen.kinds import SandboxLevel
from loopwright.codegen.math_mode import FP32, MathMode
from tuner.errors import RaceFailed
from tuner.types import (
    Certificate,
    DeviceState,
    Failure,
    LibraryTime,
    MeasureCandidate,
    Outcome,
    Seconds,
    Span,
    StopReason,
    TaskSpec,
    TensorInfo,
    Trial,
    Waited,
)


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """One candidate to build and measure.

    ``key`` comes back with the outcome; ``trace_json`` None is the baseline; a candidate slower than ``cutoff``
    (seconds) need not be sampled to the end; with ``alone``, no other candidate is measured in its process.
    """

    key: str
    module_json: str
    args: tuple[TensorInfo, ...]
    trace_json: str | None
    cutoff: float | None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class RaceRequest:
    """Contenders for the closing race: trace JSON by candidate hash, the fastest first.

    The baseline always runs. It is timed, as a vendor's library is, unless ``yardsticks`` is False: then it has no
    samples. All rounds together may take ``seconds``, but a few are run in any case. A race whose result is not clear
    is repeated, unless ``repeats`` is False.
    """

    module_json: str
    args: tuple[TensorInfo, ...]
    outputs: tuple[bool, ...]
    """For each argument, whether the function only writes it: such buffers are poisoned."""
    contenders: dict[str, str]
    yardsticks: bool = True
    repeats: bool = True
    math: MathMode = FP32
    """How the function may multiply float32: results may differ by as much."""
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Raced:
    """A program whose results agree with the unscheduled program's.

    ``run_secs`` are seconds per call, one sample a round; a program that was dropped as too slow has fewer than the
    others. The errors are the largest differences from the unscheduled program's results, in absolute terms and as a
    share of the largest reference value.
    """

    run_secs: tuple[Seconds, ...]
    max_abs_error: float
    max_rel_error: float


@dataclass(frozen=True, slots=True)
class RaceResult:
    """Results of the baseline and of every contender, by candidate hash.

    A contender that may not be published is a `Failure`; a wrong result is ``Failure(CERTIFY, WRONG_RESULT, …)``.
    ``library`` is the time of a vendor's library, if one computes the same; ``sandbox`` the level of the walls around
    the process of the race, ``system`` the kernel and the driver under it, ``device_state`` that of a GPU after the
    last round; None if they are unknown. ``artifacts`` are the SHA-256 (hexadecimal) of the code of each program that
    was raced, by candidate hash. ``waited`` is None if the race did not have to wait for other processes. ``worker`` is
    that of the race, as in the ledger.
    """

    baseline: Raced
    contenders: dict[str, Raced | Failure]
    library: LibraryTime | None = None
    sandbox: SandboxLevel | None = None
    system: str | None = None
    device_state: DeviceState | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    waited: Waited | None = None
    worker: str = ""


Meanwhile = Callable[[], None]
"""Called every few milliseconds by a port that waits. What it raises ends the waiting, and is handed on."""


def one_by_one(
    race: Callable[[RaceRequest, Meanwhile], RaceResult], requests: Sequence[RaceRequest], meanwhile: Meanwhile
) -> list[RaceResult | RaceFailed]:
    """Return the results of `Fleet.race_all` for a fleet that runs one race at a time."""
    results: list[RaceResult | RaceFailed] = []
    for request in requests:
        try:
            results.append(race(request, meanwhile))
        except RaceFailed as error:
            results.append(error)
    return results


def nothing_meanwhile() -> None:
    """Do nothing: the default for ``meanwhile`` while a port waits."""


class Search(Protocol):
    """Searches the design spaces of a job's tasks, which have numbers. Not thread-safe.

    A method raises SearchFailed if the search of its task cannot go on (too much time or memory, a crash). The others'
    searches go on; the failed task's must not be asked again.
    """

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        """Read a task. Return for each argument whether the function only writes it."""
        ...

    def choose(self, task: int, meanwhile: Meanwhile) -> MeasureCandidate | None:
        """Return the most promising program of a task that was read, after the search.

        It is the fastest known one, or the first choice of the rules, which needs no space to be opened; or the first
        program of the built-in space if no rule has a choice. None if there is no program at all.
        """
        ...

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        """Open the space of a task that was read, and learn from its trials so far.

        Returns False if the user's traces do not fit the function.
        """
        ...

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        """Up to ``count`` programs of an opened task that were not proposed before; fewer if there are no more."""
        ...

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Observe a finished trial of an opened task, to learn from it at the next `propose`."""
        ...


class Fleet(Protocol):
    """Builds and measures on one device class. Not thread-safe.

    Every submitted request comes back from `collect` exactly once, as `Measured` or `Failure`; a lost process is
    retried inside, and only what cannot be had at all comes back as DEVICE_LOST. A candidate whose own process was
    killed comes back as KILLED at once; its last span is this attempt, and it may be submitted again.
    """

    @property
    def slots(self) -> int:
        """Requests in flight that keep builders and devices busy; at least 1."""
        ...

    def submit(self, request: MeasureRequest) -> None: ...

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        """Outcomes by key that are there, waiting up to ``timeout`` seconds for the first. Empty if none came."""
        ...

    def forward(self) -> None:
        """Send programs that are built to be measured. Does not wait."""
        ...

    def prepare(self, module_json: str) -> None:
        """Begin to build what each race of a module needs beside its contenders. Does not wait."""
        ...

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        """Check and race in a fresh child. Raises RaceFailed if the baseline or the reference cannot be run."""
        ...

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        """Run the races of several functions, in the same processes if that is possible.

        Returns what `race` would return or raise for each.
        """
        ...

    def abandon(self) -> None:
        """Stop all requests that have no result yet, and release builders and devices to others."""
        ...


class Ledger(Protocol):
    """The durable record of trials. Every method is one short transaction.

    Every method but `elsewhere` and `cancelled` raises LeaseLost if another run owns the job or the task now: this run
    must end.
    """

    def history(self, task: int) -> Sequence[Trial]:
        """All trials of task number ``task``, in the order they were proposed; unfinished ones have no outcome."""
        ...

    def propose(self, task: int, candidates: Sequence[MeasureCandidate], searched: Span | None = None) -> list[Trial]:
        """Record candidates before they are measured, except candidates that the task already has.

        ``searched`` is the time in which they were found, if they were.
        """
        ...

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        """Record the outcomes of trials, in this order. Raises LeaseLost if this run no longer owns one of the trials.

        The run must end then; the outcomes of those that it owns are recorded.
        """
        ...

    def note_kill(self, trial: Trial, attempt: Span) -> Trial:
        """Record an attempt whose process was killed, and return the trial with it, which stays unfinished.

        Raises LeaseLost where this run no longer owns the trial: the run must end.
        """
        ...

    def elsewhere(self) -> float | None:
        """Seconds of one run of the model in tasks of the job that this run does not tune, by the best known.

        None if one of them has no latency yet.
        """
        ...

    def end(self, reason: StopReason) -> None:
        """Write why the search of the job ended. A run that resumes the job may write it again."""
        ...

    def certify(self, task: int, certificate: Certificate, stopped: StopReason) -> None:
        """Write the task's result, and why its search ended."""
        ...

    def fail(self, task: int, message: str) -> None:
        """Write that the task has no result, and why."""
        ...

    def postpone(self, task: int) -> None:
        """Write that the task has no result, because the time of the job was over before its race."""
        ...

    def cancelled(self) -> bool:
        """Return whether the user wants the job to stop. Called twice a second."""
        ...
