"""Values that repositories store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from db.engine.columns import digest
from db.models import OWNER
from loopwright.codegen.kinds import SandboxLevel
from tuner.budget import Budget
from tuner.types import BUILTIN_SPACE, Activity, DeviceClass

LAST = -100
"""The priority of jobs that no user waits for."""


def space_hash(space_json: str | None) -> str:
    """Return the name of a design space: the digest of its traces, or `BUILTIN_SPACE`."""
    return BUILTIN_SPACE if space_json is None else digest(space_json)


@dataclass(frozen=True, slots=True)
class NewJob:
    """The new job that ``jobs.create`` stores.

    ``space_json`` is the canonical JSON of the user's traces, or None for the built-in space. ``shapes`` are bindings
    of symbolic extents if the module is tuned for several. ``gate`` is what it is compared with once its tasks are
    done; ``rechecks`` are certificates to race again, by id, with the reason; ``ablated_trial`` is a trial to race with
    its neighbours. ``request_digest`` names the request
    that came under ``idempotency_key``, which is the user's own.
    ``private``: only its user and admins see the job, and its workloads unless others have them, too. ``labels`` are
    those of the workers that may measure it; none: any worker of the device class. ``tags`` and ``description`` are
    what its user says of it.
    """

    name: str
    module_json: str
    device_class: DeviceClass
    budget: Budget
    suggested_trials: int = 0
    seed: int = 0
    priority: int = 0
    space_json: str | None = None
    shapes: tuple[dict[str, int], ...] | None = None
    force: bool = False
    notes: tuple[str, ...] = ()
    user_name: str = OWNER
    private: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    description: str = ""
    gate: dict[str, Any] | None = None
    rechecks: tuple[tuple[str, str], ...] = ()
    ablated_trial: str | None = None
    idempotency_key: str | None = None
    request_digest: str | None = None

    @property
    def bytes(self) -> int:
        """The size of its texts."""
        return len(self.module_json.encode()) + len((self.space_json or "").encode())


@dataclass(frozen=True, slots=True)
class LabelledMachine:
    """A worker that jobs can be measured on; ``labels`` are its labels, each as key and value."""

    device_class: DeviceClass
    labels: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """What the loop of a running job could use now: up to so many ``devices`` of any of the ``kinds``.

    It needs them for about so many ``seconds``. ``waited`` are the seconds for which its controller has had none.
    """

    priority: int
    seconds: float
    devices: int
    waited: float
    kinds: tuple[str, ...]

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Demand:
        """Return the demand that was stored by its fields."""
        return Demand(**{**stored, "kinds": tuple(stored["kinds"])})


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What a worker is and does now. ``labels`` are those that its node's operator gave it."""

    id: str
    host: str
    device: str
    device_class: DeviceClass
    builders: int
    sandbox: SandboxLevel
    labels: Mapping[str, str] = field(default_factory=dict)
    activity: Activity = field(default_factory=Activity)


@dataclass(frozen=True, slots=True)
class ImportedCertificate:
    """A certificate that came with a record, signed (base64) by the owner of a public key (base64), whoever that is."""

    document: str
    public_key: str
    signature: str


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A measurement made elsewhere; ``trace_json`` is TVM's ``[instructions, decisions]``, ``run_secs`` not empty."""

    workload_hash: str
    device_class_id: str
    trace_json: str
    run_secs: tuple[float, ...]
    tvm_version: str
    certificate: ImportedCertificate | None = None
