"""Frozen values that cross all boundaries: between packages, processes and machines.

They contain no TVM objects, so that processes without TVM (the API, the controller) can use them.
Modules, traces and targets travel as the JSON text that TVM wrote.
"""

from __future__ import annotations

import enum
import hashlib
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from annotated_types import Gt, MaxLen, MinLen

from loopwright.codegen.kinds import FailureKind, Lane, Origin, Predictor, SandboxLevel, Stage, ThrottleReason, Values
from loopwright.codegen.math_mode import FP32, TF32, MathMode
from tuner.codec import Base64

BUILTIN_SPACE = "builtin-3"
"""Name of the built-in design space in the database. It changes when the space comes to contain faster programs: an
answer from an earlier space must not keep anybody from a search."""
_LONGEST_TRACE = 16 * 2**20
"""Characters. Not tuned: far beyond the longest of the examples."""
_MOST_FEATURES = 2**20
"""Bytes. Not tuned: a few thousand are usual."""
_HASH_LENGTH = 32

Seconds = Annotated[float, Gt(0)]
RunSecs = Annotated[tuple[Seconds, ...], MinLen(1)]
"""Seconds per call: at least one sample."""


LOSSES = (FailureKind.DEVICE_LOST, FailureKind.KILLED)
"""What ended a process from outside. It says nothing about a latency, so that no cost model learns from it."""


class StopReason(enum.StrEnum):
    """Why a search ended."""

    BUDGET = "budget"
    """All trials were made."""
    TIME = "time"
    DEVICE_TIME = "device_time"
    """The measuring slots were used for as long as the job may use them."""
    TARGET = "target"
    """One run of the model is as fast as the user asked for."""
    PLATEAU = "plateau"
    """More search is not expected to gain much."""
    EXHAUSTED = "exhausted"
    """The design space has no further program."""
    FAILED = "failed"
    """The search took too much time or memory, or crashed."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A buffer argument: its shape (elements), TVM dtype, and the values that it may have in a test."""

    shape: tuple[int, ...]
    dtype: str
    values: Values = Values.ANY

    @property
    def bytes(self) -> int:
        """The size of its elements, each a whole number of bytes, as in TVM's arrays."""
        bits = re.search(r"\d+", self.dtype)
        return math.prod(self.shape) * (-(-int(bits.group()) // 8) if bits else 1)


@dataclass(frozen=True, slots=True)
class Operation:
    """The computation of a function.

    ``op`` is its name (``matmul``, ``conv2d``, ``softmax`` …), ``dtype`` that of the values it computes most of
    (``tf32`` where it may round factors of float32 so),
    ``flop`` the floating point operations of one call, None where TVM cannot say. ``op`` is empty where unknown.
    """

    op: str = ""
    dtype: str = ""
    flop: float | None = None

    @property
    def math(self) -> MathMode:
        """How it may multiply float32."""
        return TF32 if self.dtype == TF32 else FP32


@dataclass(frozen=True, slots=True)
class Workload:
    """One schedulable function.

    ``hash`` is the digest of its normalised form, ``family`` that of the form without its whole numbers,
    ``module_json`` an IRModule whose only function is ``main`` (TVM's JSON, bound to the TVM version), ``script`` its
    TVMScript for people.
    """

    hash: str
    family: str
    name: str
    module_json: str
    script: str
    args: tuple[TensorInfo, ...]
    operation: Operation = Operation()

    @property
    def math(self) -> MathMode:
        """How it may multiply float32, which is a part of its hash."""
        return self.operation.math


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A workload within a module, with the number of times the module calls it.

    ``known`` are traces (JSON) that were measured for it before, here or elsewhere, the fastest first; ``relatives``
    are some that were fast for other workloads of its family, the most promising first; ``barred`` are those that must
    not be proposed, because their processes were killed (`FailureKind.KILLED`). ``sources`` say where the calls come
    from: modules of PyTorch, nodes of ONNX, lines of TVMScript, each once.
    """

    workload: Workload
    weight: int
    relatives: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


OVER_RPC = ", over RPC"
"""Ends the runtime of boards, which are reached through TVM's RPC."""


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """Machines whose timings may be compared.

    ``target_json`` is the canonical target that code is generated for; ``model`` the CPU vendor with its
    feature digest, or the GPU's name; ``threads`` what TVM's runtime is told to use.
    """

    target_json: str
    model: str
    features: tuple[str, ...]
    cores: int
    threads: int
    runtime: str

    @staticmethod
    def imported(target_json: str, runtime: str) -> DeviceClass:
        """Return the class of measurements that were imported: no machine is known, so nothing compares with them."""
        return DeviceClass(target_json, "imported: machine unknown", (), 0, 0, runtime)

    @property
    def is_board(self) -> bool:
        """Return whether the machines are boards, which run a user's program only if the user asks for their target."""
        return self.runtime.endswith(OVER_RPC)

    @property
    def id(self) -> str:
        """Digest of all fields: equal ids mean comparable timings."""
        text = "\n".join(
            [self.target_json, self.model, ",".join(self.features), str(self.cores), str(self.threads), self.runtime]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class MeasureCandidate:
    """A trace proposed for measuring.

    ``trace_json`` is TVM's ``[instructions, decisions]`` as text, or None for the baseline;
    ``predicted`` the score of the model ``predicted_by`` (higher is faster; no unit), None if no model selected it;
    ``parent`` the hash of the candidate it came from;
    ``features`` what the cost model sees of it (`tuner.cost_model.features.to_bytes`), kept to train base models.
    """

    trace_json: Annotated[str, MaxLen(_LONGEST_TRACE)] | None
    origin: Origin
    predicted: float | None = None
    parent: Annotated[str, MaxLen(_HASH_LENGTH)] | None = None
    features: Annotated[Base64, MaxLen(_MOST_FEATURES)] | None = field(default=None, repr=False, compare=False)
    predicted_by: Predictor | None = None

    @property
    def hash(self) -> str:
        """Digest of the trace; within a task, a candidate with the same hash is the same candidate."""
        return hashlib.sha256((self.trace_json or "baseline").encode()).hexdigest()[:_HASH_LENGTH]


BASELINE = MeasureCandidate(trace_json=None, origin=Origin.BASELINE)
"""The unscheduled program, with which every candidate is compared."""


@dataclass(frozen=True, slots=True)
class CacheRate:
    """A cache of a device: bytes of all of its instances, and bytes per second that all threads copy within it."""

    name: str
    bytes: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Span:
    """Who worked on a candidate, and when: seconds since 1970, by that process's clock."""

    lane: Lane
    worker: str
    start: float
    end: float


def device_seconds(spans: Iterable[Span]) -> float:
    """Return how long a measuring slot was used."""
    return max(0.0, sum(span.end - span.start for span in spans if span.lane is Lane.MEASURE))


@dataclass(frozen=True, slots=True)
class Activity:
    """The work of a worker at a heartbeat.

    ``slot_since`` is None where the measuring slot is idle; ``slot_trial_id`` is the trial in it, if it is at one;
    ``slot_use`` is the share of the time since the heartbeat before that the slot was in use. ``leaving``: its host
    shuts down as soon as what is in flight has ended. ``waits_for`` is the program that uses the host's cores while the
    slot waits for them.
    """

    builders_busy: int = 0
    slot_since: datetime | None = None
    slot_trial_id: str | None = None
    slot_use: float | None = None
    leaving: bool = False
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The clocks (MHz), temperature and power of a GPU right after it was timed.

    ``throttled`` is empty if nothing slows the clocks down. What the driver does not tell is None.
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: int | None = None
    throttled: tuple[ThrottleReason, ...] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Raw samples of one candidate, in seconds per call.

    ``spans`` are its build and its measurement. ``sandbox`` is the level of the walls around the process that ran the
    candidate, None if it is unknown. ``device_state`` is None for a CPU, too.
    """

    run_secs: RunSecs
    worker: str
    spans: tuple[Span, ...] = field(default=(), compare=False)
    sandbox: SandboxLevel | None = None
    device_state: DeviceState | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.run_secs)

    @property
    def least(self) -> float:
        """What disturbs a call makes it slower: of a few samples the least tells programs apart best."""
        return min(self.run_secs)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no latency, with a message that says what to do."""

    stage: Stage
    kind: FailureKind
    message: str
    worker: str | None = None
    spans: tuple[Span, ...] = field(default=(), compare=False)


Outcome = Measured | Failure


@dataclass(frozen=True, slots=True)
class Trial:
    """A line of the ledger as the search sees it: a candidate and what became of it (None: not finished).

    ``killed`` are the attempts at an unfinished trial whose process was killed.
    """

    id: str
    candidate: MeasureCandidate
    outcome: Outcome | None
    killed: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryTime:
    """The time of a vendor's library for the same, timed between the contenders' rounds: a yardstick, no contender."""

    name: str
    run_secs: RunSecs


@dataclass(frozen=True, slots=True)
class Waited:
    """How long a noisy race waited for other processes of its host, and how many cores they used at the last look."""

    seconds: Seconds
    cores: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The fastest program of a race besides the winner.

    ``slowdown`` is its median over the winner's, ``low`` to ``high`` the interval of 95 %; ``high`` is infinite after a
    single round.
    """

    candidate_hash: str
    slowdown: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """The evidence for a best: correctness against the unscheduled program, and the closing interleaved race.

    ``best_run_secs[i]`` and ``baseline_run_secs[i]`` (seconds per call) come from round i of the race; a slow baseline
    ran in the first few only. Where the baseline won, ``candidate_hash`` is its hash and both lists are its own.
    """

    candidate_hash: str
    inputs: str
    rtol: float
    atol: float
    max_abs_error: float
    max_rel_error: float
    best_run_secs: tuple[float, ...]
    baseline_run_secs: tuple[float, ...]
    contenders: int
    rejected: dict[str, Failure] = field(default_factory=dict)
    """Why contenders may not be published (a wrong result, a crash, a build that failed), by candidate hash."""
    library: LibraryTime | None = None
    sandbox: SandboxLevel | None = None
    """The level of the walls around the process of the race; None if it is unknown."""
    system: str | None = field(default=None, compare=False)
    """The kernel and the driver of the race; None if they are unknown, and where it is read from the database."""
    seed: int | None = field(default=None, compare=False)
    """From which the inputs of the race were drawn; None where it is read from the database."""
    artifact_sha256: str | None = field(default=None, compare=False)
    """Digest of the raced machine code, as `RaceResult.artifacts`; None if it is unknown, and where it is read from the
    database."""
    device_state: DeviceState | None = None
    """Of the GPU after the last round; None for a CPU, and if it is unknown."""
    waited: Waited | None = field(default=None, compare=False)
    """None if the race did not have to wait, and where it is read from the database."""
    runner_up: RunnerUp | None = field(default=None, compare=False)
    """None if nothing else ran in all rounds, and where it is read from the database."""

    @property
    def speedup(self) -> float:
        return speedup(self.baseline_run_secs, self.best_run_secs)

    @property
    def spread(self) -> float:
        return spread(self.best_run_secs)


def speedup(baseline_run_secs: Sequence[float], best_run_secs: Sequence[float]) -> float:
    """Return the median of `paired_ratios`, by which a race decides: what slows the machine in a round slows both.

    For an even number of rounds it is the geometric mean of the two ratios in the middle, so that the speedup the other
    way round is its inverse. Raises StatisticsError: there is no round.
    """
    ratios = paired_ratios(baseline_run_secs, best_run_secs)
    return math.sqrt(statistics.median_low(ratios) * statistics.median_high(ratios))


def paired_ratios(baseline_run_secs: Sequence[float], best_run_secs: Sequence[float]) -> list[float]:
    """Return the ratio of each round that both ran in. A baseline that is far slower runs in the first rounds only."""
    return [base / best for base, best in zip(baseline_run_secs, best_run_secs, strict=False)]


def spread(run_secs: Sequence[float]) -> float:
    """Interquartile range over median of samples; 0 for a single one."""
    if len(run_secs) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(run_secs, n=4, method="inclusive")
    return (high - low) / middle
