"""Requests to the workers' processes and their answers: values that `tuner.codec` makes JSON, never pickled objects.

An answer that may be missing is ``value | Failure``. Controllers and actors may be of different versions for a while: a
field that is added to a message needs a default, which stands for its absence.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge

from loopwright.codegen.kinds import SandboxLevel
from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.codegen.weights.packed_weight import PackedWeight
from tuner.ports import Raced
from tuner.types import (
    CacheRate,
    DeviceClass,
    DeviceState,
    Failure,
    LibraryTime,
    RunSecs,
    Seconds,
    Span,
    TensorInfo,
    Waited,
)


class ArtifactFormat(enum.StrEnum):
    SHARED_LIBRARY = "so"
    LLVM_IR = "ll"
    CUDA_SOURCE = "cu"
    """Only from a builder without a CUDA runtime; no device loads it."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Generated code: LLVM IR or CUDA source as it is, a shared library in base64.

    ``packed`` is the weight that a function of the code packs once, before the calls that are timed.
    """

    format: ArtifactFormat
    code: str
    packed: PackedWeight | None = None

    @property
    def sha256(self) -> str:
        """The digest of ``code``, in hexadecimal digits."""
        return hashlib.sha256(self.code.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A program to build: a module with a trace applied (None: the baseline).

    With ``exact_math`` it is a reference for results: its elementary functions are those of the C library, and it runs
    on all threads.
    """

    module_json: str
    trace_json: str | None
    target_json: str
    exact_math: bool = False


@dataclass(frozen=True, slots=True)
class BuildAnswer:
    """A builder's answer to a request; ``start`` and ``end`` are seconds since 1970, ``builder`` its name."""

    result: Artifact | Failure
    builder: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Device:
    """The device on which a child runs programs: ``kind`` is "llvm" or "cuda", ``index`` the GPU's number."""

    kind: str
    index: int

    @staticmethod
    def named(name: str) -> Device:
        """Return the device that is called "cpu" or "cuda:N"."""
        kind, _, index = name.partition(":")
        return Device("cuda", int(index)) if kind == "cuda" else HOST


HOST = Device("llvm", 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program on its way through the fleet.

    ``key`` is the request's. A program that is slower than ``cutoff`` (seconds per call) need not be sampled to the
    end. ``artifact`` is None until it is built, ``spans`` are what was done for it so far, and ``losses`` counts the
    processes of others that were lost with it.
    """

    key: str
    artifact: Artifact | None = None
    cutoff: float | None = None
    spans: tuple[Span, ...] = ()
    losses: int = 0

    @property
    def code(self) -> Artifact:
        """The artifact of a candidate that is built."""
        assert self.artifact is not None
        return self.artifact


@dataclass(frozen=True, slots=True)
class MeasureBatch:
    """Candidates with the same arguments, which one process measures."""

    args: tuple[TensorInfo, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds per call of one candidate, and the state of the device after the last of them."""

    run_secs: RunSecs
    device_state: DeviceState | None = None


@dataclass(frozen=True, slots=True)
class MeasureProgress:
    """The result of the candidate at ``position`` of its batch.

    None: the child works on this candidate from now on, so that a crash comes from it.
    """

    position: Annotated[int, Ge(0)]
    result: Samples | Failure | None = None


@dataclass(frozen=True, slots=True)
class MeasureAnswer:
    """The result of one candidate of a batch.

    ``sandbox`` is the level of the walls around the child that ran the candidate; ``start`` and ``end`` are seconds
    since 1970.
    """

    result: Samples | Failure
    sandbox: SandboxLevel
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class BuiltRace:
    """A closing race whose programs are built.

    ``outputs`` says for each argument whether the function only writes it, ``reference`` is the unscheduled program
    for the host, and the first of ``contenders`` is the baseline, which is timed if there are ``yardsticks``. So
    is a vendor's library, if the worker has one that computes the same, unless ``library`` is False. ``repeats`` says
    whether a race whose result is not clear is repeated, and ``seconds`` how long all rounds may take. The races that
    are ``following`` are of other functions, and run afterwards in the same processes; none follow these.
    """

    args: tuple[TensorInfo, ...]
    outputs: tuple[bool, ...]
    reference: Artifact
    contenders: tuple[Artifact, ...]
    seed: int
    yardsticks: bool = True
    repeats: bool = True
    library: bool = True
    math: MathMode = FP32
    """How the function may multiply float32."""
    seconds: float = 15.0
    following: tuple[BuiltRace, ...] = ()


@dataclass(frozen=True, slots=True)
class RaceAnswer:
    """Results of a `BuiltRace`, in the order of its contenders, and the state of the device after the last round.

    The measurer adds the level of the walls around its child, and the system (`workers.device.system`): a child that
    runs what users sent can claim anything. Whoever asked adds the seed and the worker. ``following`` are the answers
    of the races that follow; there are none from a board, or from a worker with an older version.
    """

    contenders: tuple[Raced | Failure, ...]
    library: LibraryTime | None = None
    device_state: DeviceState | None = None
    sandbox: SandboxLevel | None = None
    system: str | None = None
    seed: int | None = None
    worker: str = ""
    waited: Waited | None = None
    following: tuple[RaceAnswer, ...] = ()

    def answers(self, race: BuiltRace) -> bool:
        """Return whether each of the race's contenders has its result, with samples if it was to be timed.

        The same goes for the races that follow, unless none of them is answered.
        """
        if len(self.following) not in (0, len(race.following)):
            return False
        if not all(map(RaceAnswer.answers, self.following, race.following)):
            return False
        return len(self.contenders) == len(race.contenders) and all(
            isinstance(each, Failure) or each.run_secs or not (position or race.yardsticks)
            for position, each in enumerate(self.contenders)
        )


@dataclass(frozen=True, slots=True)
class ModelProgram:
    """A submitted module, and the traces of its functions by workload hash; None: the unscheduled function.

    The model without schedules is timed beside it if both can be built in so many seconds, which the first one's build
    tells; not at all for 0.
    """

    module_json: str
    target_json: str
    traces: dict[str, str | None]
    untuned_build_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """Seconds of one run of a whole model, one sample an entry, or why there are none.

    ``untuned_secs`` are those of the model without schedules, each taken next to the sample at the same place of
    ``run_secs``; empty if it was not timed.
    """

    run_secs: tuple[Seconds, ...]
    reason: str | None
    untuned_secs: tuple[Seconds, ...] = ()


@dataclass(frozen=True, slots=True)
class ReferenceRequest:
    """Reference kernels to build for a target.

    ``threads`` is the number of threads of TVM's runtime, ``caches`` the bytes of the caches that they use together, by
    name; empty if nobody knows them.
    """

    target_json: str
    threads: int
    caches: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """A kernel that copies within caches: ``threads`` rows of any length that ``step`` elements divide, repeatedly.

    ``caches`` are the bytes of each cache by name, the smallest first.
    """

    kernel: Artifact
    threads: int
    step: int
    caches: dict[str, int]


@dataclass(frozen=True, slots=True)
class ReferenceKernels:
    """Kernels of known work: ``chains`` computes ``flop`` operations on arrays of ``shape``; ``copy`` copies.

    ``sweeps`` is None if the caches are not known.
    """

    chains: Artifact
    copy: Artifact
    shape: tuple[int, ...]
    flop: float
    sweeps: Sweeps | None = None


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """Speed of a device with the reference kernels.

    ``secs`` is the time of the multiply-adds, ``flops`` operations per second in ``dtype``, ``bytes_per_s`` the copy's
    rate (None: not timed), ``caches`` the rates within caches, as far as they were timed.
    """

    secs: float
    dtype: str
    flops: float
    bytes_per_s: float | None
    caches: tuple[CacheRate, ...] = ()


@dataclass(frozen=True, slots=True)
class BuilderStatus:
    """The process of a node's builders, and how many of them build."""

    pid: int
    busy: int


@dataclass(frozen=True, slots=True)
class MeasurerStatus:
    """The process of a measurer, the level of the walls around its child, the system, and the use of its slot.

    ``since`` is when the slot's work began, in seconds since 1970 (None: idle), ``trial`` the trial that it measures,
    ``used`` the seconds that it was in use since the process started. ``leaving``: its host takes no more work.
    ``waits_for`` is the program that has the host's lock while others wait for it.
    """

    pid: int
    sandbox: SandboxLevel
    system: str
    since: float | None
    trial: str | None
    used: float
    leaving: bool = False
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class DetectedDevice:
    """A device of this machine: ``name`` is "cpu" or "cuda:N", ``processor`` what the kernel calls the processor."""

    name: str
    device_class: DeviceClass
    processor: str = ""
