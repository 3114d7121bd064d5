"""Requests to the workers' processes and their answers, as values and as JSON.

``to_json`` returns dictionaries, lists, strings, numbers and None only, so that no pickled object crosses a process
boundary; ``from_json`` returns an equal value. An answer that may be missing is ``value | Failure``.

Controllers and actors may be of different versions for a while. A field that is added to a message needs a default,
which stands for its absence. A status may have fields that are not known here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Protocol, Self, TypeVar

from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.codegen.packed_weight import PackedWeight
from tuner.ports import Raced
from tuner.types import DeviceClass, DeviceState, Failure, LibraryTime, SandboxLevel, TensorInfo

Json = dict[str, Any]
T = TypeVar("T")


class Message(Protocol):
    def to_json(self) -> Json: ...


def result_to_json(result: Message | Failure) -> Json:
    return {"failure": result.to_json()} if isinstance(result, Failure) else {"value": result.to_json()}


def result_from_json(fields: Json, read: Callable[[Json], T]) -> T | Failure:
    """Return the failure in ``fields``, or ``read`` of the value."""
    return Failure.from_json(fields["failure"]) if "failure" in fields else read(fields["value"])


@dataclass(frozen=True, slots=True)
class _Flat:
    """Base of messages whose fields are JSON as they are."""

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class _FlatAnswer(_Flat):
    """The same for answers. What is not known here, because the actor is of a later version, is left out."""

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        return cls(**_known(cls, fields))


def _state_to_json(state: DeviceState | None) -> Json | None:
    return None if state is None else state.to_json()


def _known(cls: type[Any], fields: Json) -> Json:
    return {field.name: fields[field.name] for field in dataclass_fields(cls) if field.name in fields}


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

    def to_json(self) -> Json:
        return {
            "format": self.format.value,
            "code": self.code,
            "packed": None if self.packed is None else asdict(self.packed),
        }

    @staticmethod
    def from_json(fields: Json) -> Artifact:
        packed = fields["packed"]
        return Artifact(
            ArtifactFormat(fields["format"]),
            fields["code"],
            None if packed is None else PackedWeight(packed["argument"], tuple(packed["shape"]), packed["dtype"]),
        )


@dataclass(frozen=True, slots=True)
class BuildRequest(_Flat):
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
    """What a builder made of a request; ``start`` and ``end`` are seconds since 1970, ``builder`` its name."""

    result: Artifact | Failure
    builder: str
    start: float
    end: float

    def to_json(self) -> Json:
        return {
            "result": result_to_json(self.result),
            "builder": self.builder,
            "start": self.start,
            "end": self.end,
        }

    @staticmethod
    def from_json(fields: Json) -> BuildAnswer:
        result = result_from_json(fields["result"], Artifact.from_json)
        return BuildAnswer(result, fields["builder"], fields["start"], fields["end"])


@dataclass(frozen=True, slots=True)
class Device(_Flat):
    """The device on which a child runs programs: ``kind`` is "llvm" or "cuda", ``index`` the GPU's number."""

    kind: str
    index: int

    @staticmethod
    def named(name: str) -> Device:
        """Return the device that is called "cpu" or "cuda:N"."""
        kind, _, index = name.partition(":")
        return Device("cuda", int(index)) if kind == "cuda" else Device("llvm", 0)


@dataclass(frozen=True, slots=True)
class BuiltCandidate:
    """A candidate to measure. One that is slower than ``cutoff`` (seconds per call) need not be sampled to the end."""

    key: str
    artifact: Artifact
    cutoff: float | None

    def to_json(self) -> Json:
        return {"key": self.key, "artifact": self.artifact.to_json(), "cutoff": self.cutoff}

    @staticmethod
    def from_json(fields: Json) -> BuiltCandidate:
        return BuiltCandidate(fields["key"], Artifact.from_json(fields["artifact"]), fields["cutoff"])


@dataclass(frozen=True, slots=True)
class MeasureBatch:
    """Candidates with the same arguments, which one process measures."""

    args: tuple[TensorInfo, ...]
    candidates: tuple[BuiltCandidate, ...]

    def to_json(self) -> Json:
        return {
            "args": [info.to_json() for info in self.args],
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }

    @staticmethod
    def from_json(fields: Json) -> MeasureBatch:
        return MeasureBatch(
            tuple(map(TensorInfo.from_json, fields["args"])),
            tuple(map(BuiltCandidate.from_json, fields["candidates"])),
        )


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds per call of one candidate, and the state of the device after the last of them."""

    run_secs: tuple[float, ...]
    device_state: DeviceState | None = None

    def to_json(self) -> Json:
        return {"run_secs": list(self.run_secs), "device_state": _state_to_json(self.device_state)}

    @staticmethod
    def from_json(fields: Json) -> Samples:
        return Samples(tuple(fields["run_secs"]), DeviceState.from_json(fields["device_state"]))


@dataclass(frozen=True, slots=True)
class MeasureStarted:
    """The child works on the candidate at ``position`` of its batch from now on: a crash comes from this candidate."""

    position: int

    def to_json(self) -> Json:
        return {"started": self.position}


@dataclass(frozen=True, slots=True)
class MeasureFinished:
    """The result of the candidate at ``position`` of its batch."""

    position: int
    result: Samples | Failure

    def to_json(self) -> Json:
        return {"finished": self.position, "result": result_to_json(self.result)}


def measure_progress_from_json(fields: Json) -> MeasureStarted | MeasureFinished:
    if "started" in fields:
        return MeasureStarted(fields["started"])
    return MeasureFinished(fields["finished"], result_from_json(fields["result"], Samples.from_json))


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

    def to_json(self) -> Json:
        return {
            "result": result_to_json(self.result),
            "sandbox": self.sandbox.value,
            "start": self.start,
            "end": self.end,
        }

    @staticmethod
    def from_json(fields: Json) -> MeasureAnswer:
        result = result_from_json(fields["result"], Samples.from_json)
        return MeasureAnswer(result, SandboxLevel(fields["sandbox"]), fields["start"], fields["end"])


@dataclass(frozen=True, slots=True)
class BuiltRace:
    """A closing race whose programs are built.

    ``outputs`` says for each argument whether the function only writes it, ``reference`` is the unscheduled program
    for the host, and the first of ``contenders`` is the baseline, which is timed if there are ``yardsticks``. So
    is a vendor's library, if the worker has one that computes the same, unless ``library`` is False.
    """

    args: tuple[TensorInfo, ...]
    outputs: tuple[bool, ...]
    reference: Artifact
    contenders: tuple[Artifact, ...]
    seed: int
    yardsticks: bool = True
    library: bool = True
    math: MathMode = FP32
    """How the function may multiply float32."""

    def to_json(self) -> Json:
        return {
            "math": self.math,
            "yardsticks": self.yardsticks,
            "library": self.library,
            "args": [info.to_json() for info in self.args],
            "outputs": list(self.outputs),
            "reference": self.reference.to_json(),
            "contenders": [artifact.to_json() for artifact in self.contenders],
            "seed": self.seed,
        }

    @staticmethod
    def from_json(fields: Json) -> BuiltRace:
        return BuiltRace(
            args=tuple(map(TensorInfo.from_json, fields["args"])),
            outputs=tuple(fields["outputs"]),
            reference=Artifact.from_json(fields["reference"]),
            contenders=tuple(map(Artifact.from_json, fields["contenders"])),
            seed=fields["seed"],
            yardsticks=fields["yardsticks"],
            library=fields["library"],
            math=fields["math"],
        )


@dataclass(frozen=True, slots=True)
class RaceAnswer:
    """Results of a `BuiltRace`, in the order of its contenders, and the state of the device after the last round."""

    contenders: tuple[Raced | Failure, ...]
    library: LibraryTime | None
    device_state: DeviceState | None = None

    def to_json(self) -> Json:
        return {
            "contenders": [result_to_json(contender) for contender in self.contenders],
            "library": None if self.library is None else self.library.to_json(),
            "device_state": _state_to_json(self.device_state),
        }

    @staticmethod
    def from_json(fields: Json) -> RaceAnswer:
        return RaceAnswer(
            tuple(result_from_json(contender, Raced.from_json) for contender in fields["contenders"]),
            None if fields["library"] is None else LibraryTime.from_json(fields["library"]),
            DeviceState.from_json(fields["device_state"]),
        )


@dataclass(frozen=True, slots=True)
class SandboxedRace:
    """The answer of a measurer's child to a race, with the level of the walls around the child and the system.

    The measurer adds both: a child that runs what users sent can claim anything. ``system`` is `workers.system`'s.
    """

    answer: RaceAnswer
    sandbox: SandboxLevel
    system: str

    def to_json(self) -> Json:
        return {"answer": self.answer.to_json(), "sandbox": self.sandbox.value, "system": self.system}

    @staticmethod
    def from_json(fields: Json) -> SandboxedRace:
        return SandboxedRace(RaceAnswer.from_json(fields["answer"]), SandboxLevel(fields["sandbox"]), fields["system"])


@dataclass(frozen=True, slots=True)
class ModelProgram(_Flat):
    """A submitted module, and the traces of its functions by workload hash; None: the unscheduled function."""

    module_json: str
    target_json: str
    traces: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """Seconds of one run of a whole model, one sample an entry, or why there are none."""

    run_secs: tuple[float, ...]
    reason: str | None

    def to_json(self) -> Json:
        return {"run_secs": list(self.run_secs), "reason": self.reason}

    @staticmethod
    def from_json(fields: Json) -> ModelTimes:
        return ModelTimes(tuple(fields["run_secs"]), fields["reason"])


@dataclass(frozen=True, slots=True)
class ReferenceRequest(_Flat):
    """Reference kernels to build for a target; ``threads`` is the number of threads of TVM's runtime."""

    target_json: str
    threads: int


@dataclass(frozen=True, slots=True)
class ReferenceKernels:
    """Kernels of known work: ``chains`` computes ``flop`` operations on arrays of ``shape``; ``copy`` copies."""

    chains: Artifact
    copy: Artifact
    shape: tuple[int, ...]
    flop: float

    def to_json(self) -> Json:
        return {
            "chains": self.chains.to_json(),
            "copy": self.copy.to_json(),
            "shape": list(self.shape),
            "flop": self.flop,
        }

    @staticmethod
    def from_json(fields: Json) -> ReferenceKernels:
        return ReferenceKernels(
            chains=Artifact.from_json(fields["chains"]),
            copy=Artifact.from_json(fields["copy"]),
            shape=tuple(fields["shape"]),
            flop=fields["flop"],
        )


@dataclass(frozen=True, slots=True)
class DeviceSpeed(_FlatAnswer):
    """Speed of a device with the reference kernels.

    ``secs`` is the time of the multiply-adds, ``flops`` operations per second in ``dtype``, ``bytes_per_s`` the copy's
    rate (None: not timed).
    """

    secs: float
    dtype: str
    flops: float
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class BuilderStatus(_FlatAnswer):
    """The process of a node's builders, and how many of them build."""

    pid: int
    busy: int


@dataclass(frozen=True, slots=True)
class MeasurerStatus:
    """The process of a measurer, the level of the walls around its child, the system, and the use of its slot.

    ``since`` is when the slot's work began, in seconds since 1970 (None: idle), ``trial`` the trial that it measures,
    ``used`` the seconds that it was in use since the process started. ``leaving``: its host takes no more work.
    """

    pid: int
    sandbox: SandboxLevel
    system: str
    since: float | None
    trial: str | None
    used: float
    leaving: bool = False

    def to_json(self) -> Json:
        return asdict(self) | {"sandbox": self.sandbox.value}

    @staticmethod
    def from_json(fields: Json) -> MeasurerStatus:
        return MeasurerStatus(**_known(MeasurerStatus, fields) | {"sandbox": SandboxLevel(fields["sandbox"])})


@dataclass(frozen=True, slots=True)
class DetectedDevice:
    """A device of this machine: ``name`` is "cpu" or "cuda:N"."""

    name: str
    device_class: DeviceClass

    def to_json(self) -> Json:
        fields = asdict(self.device_class)
        return fields | {"device": self.name, "features": list(self.device_class.features)}

    @staticmethod
    def from_json(fields: Json) -> DetectedDevice:
        values = {name: value for name, value in fields.items() if name != "device"}
        return DetectedDevice(fields["device"], DeviceClass(**values | {"features": tuple(fields["features"])}))
