"""The results of TVM for the service: frozen values that a sandboxed child returns to the service, which has no TVM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loopwright.codegen.kinds import LoopBound
from tuner.inspection.x86 import Work
from tuner.types import TaskSpec, Workload


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission taken apart.

    ``translated`` are notes on what was rewritten from an earlier TVM's dialect, ``left_alone`` are the functions that
    are not tuned, each with the reason. ``space_json`` is None for the built-in design space.
    """

    module_json: str
    space_json: str | None
    tasks: tuple[TaskSpec, ...]
    left_alone: tuple[str, ...]
    translated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetMatch:
    """A user's target as canonical JSON; ``offer`` is the index of the offered device that runs it, or None."""

    target_json: str
    offer: int | None


@dataclass(frozen=True, slots=True)
class Scripts:
    """A workload as TVMScript, unscheduled and scheduled; ``trace`` is Python, None for the baseline."""

    before: str
    after: str
    trace: str | None


@dataclass(frozen=True, slots=True)
class LoopModel:
    """The work of an iteration, the cycles that its instructions take at least, and what they are limited by.

    ``peak_share`` is the share of the peak of the vector unit that the loop reaches at that speed.
    """

    work: Work
    cycles: float
    bound: LoopBound
    peak_share: float


@dataclass(frozen=True, slots=True)
class CodeLoop:
    """Lines ``first`` to ``last`` of an assembly, from 1; ``depth`` is 1 for an outermost loop.

    ``model`` is None if the loop has others within it, and on processors other than x86.
    """

    first: int
    last: int
    depth: int
    model: LoopModel | None


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of an assembly, from 1, that is an instruction or a label; ``program_line`` is None if it is unknown."""

    number: int
    program_line: int | None


@dataclass(frozen=True, slots=True)
class Assembly:
    """The code of a scheduled program; for cuda the source of its kernels, and nothing else.

    ``program`` is what was compiled, as TVMScript; ``sources`` has for each of its lines the line of the unscheduled
    one, None if that is unknown. ``hot_loop`` is an index of ``loops``.
    """

    language: Literal["asm", "cuda"]
    text: str
    lines: list[CodeLine] = field(default_factory=list)
    program: str = ""
    sources: list[int | None] = field(default_factory=list)
    loops: list[CodeLoop] = field(default_factory=list)
    hot_loop: int | None = None


@dataclass(frozen=True, slots=True)
class AppliedModule:
    """A module with schedules applied; ``applied`` and ``missed`` are names of its functions."""

    module_json: str
    applied: list[str]
    missed: list[str]


Kind = Literal["tile", "categorical", "location", "parallel", "vector"]


@dataclass(frozen=True, slots=True)
class DecisionColumn:
    """A choice of the design space, over all trials that made it; see `loopwright.schemas.DecisionColumn`."""

    name: str
    kind: Kind
    log: bool
    categories: list[str] | None
    importance: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the values that a sampled decision may have were tried; see `loopwright.schemas.Coverage`."""

    name: str
    tried: int
    possible: int


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """One row a trace, one value a column: a number or None, an index into the categories if there are any."""

    columns: list[DecisionColumn]
    rows: list[list[float | None]]
    coverage: list[Coverage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A decision that two traces make differently, named as in a `DecisionTable`; empty where a trace lacks it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A program that differs from another one in a decision, with all that follows from this decision."""

    changes: tuple[DecisionChange, ...]
    trace_json: str


@dataclass(frozen=True, slots=True)
class Variants:
    """The neighbours of a program. ``outputs`` is that of `tuner.ports.RaceRequest`."""

    outputs: tuple[bool, ...]
    found: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record as TVM's JSON pair has it; ``run_secs`` are seconds per call.

    ``trace_json`` is None where nothing beats the unscheduled function. TVM's form cannot express that: such a record
    is not exported.
    """

    workload_hash: str
    trace_json: str | None
    run_secs: list[float]
    target_json: str


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """The texts of TVM's JSON pair."""

    database_workload: str
    database_tuning_record: str
    skipped: int = 0
    """Records that were not exported."""


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """The usable records of TVM's JSON pair; each error names the line that cannot, with the reason."""

    workloads: list[Workload]
    records: list[RecordLine]
    errors: list[str]
