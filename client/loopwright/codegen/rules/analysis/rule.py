"""A rule: one way to schedule a whole function, with knobs that the search turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from tvm.s_tir import Schedule
from tvm.target import Target, codegen

from loopwright.codegen.program.linking import machine
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.target import compute_capability

_32_REGISTERS = ("aarch64", "riscv64")
"""Architectures with 32 vector registers, of 128 bits at least: Neon, and the V extension."""

Knobs = Mapping[str, int]
"""A value for each knob of a rule, by the knob's name."""


class RuleRefused(ValueError):
    """These values of the knobs make no program: the search draws others."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A choice that is left to the search. Neighbouring values should make similar programs."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The figures of the processor that rules need.

    ``lanes`` is the number of float32 in a vector, ``registers`` the number of vector registers, ``threads`` the number
    of threads that run a parallel loop. ``has_vnni`` and ``has_maddwd`` say whether there are dot
    products of bytes, and of int16, in vectors of ``lanes`` int32. On a GPU, ``lanes`` is the number
    of float32 in the longest access, ``registers`` and ``threads`` the most that a thread and a block have, and
    ``capability`` the compute capability, times ten.
    """

    lanes: int
    registers: int
    threads: int
    has_vnni: bool = False
    has_maddwd: bool = False
    capability: int = 0

    @staticmethod
    def of(target: Target) -> MachineLimits:
        if target.kind.name == "cuda":
            return MachineLimits(4, 255, 1024, capability=compute_capability(target))
        features = set(map(str, codegen.llvm_get_cpu_features(target)))
        threads = int(target.attrs.get("num-cores", 1))
        if "avx512f" in features and "prefer-256-bit" not in features:
            return MachineLimits(16, 32, threads, "avx512vnni" in features, "avx512bw" in features)
        if machine(target) in _32_REGISTERS:
            return MachineLimits(4, 32, threads)
        lanes, registers = 8 if "avx2" in features else 4, 32 if "avx512vl" in features else 16
        has_vnni = "avxvnni" in features or {"avx512vnni", "avx512vl"} <= features
        return MachineLimits(lanes, registers, threads, has_vnni, "avx2" in features)

    def for_sums(self, dtype: str) -> MachineLimits:
        """Return the limits for sums of a dtype, of which ``lanes`` are in a vector: of float64, half as many."""
        return replace(self, lanes=self.lanes // 2) if dtype == "float64" else self


class Rule(Protocol):
    """A rule keeps its name; its ``version`` is raised by one when the same knobs come to mean another program."""

    name: str
    version: int

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        """Return the knobs for a function; none if the rule does not apply to it."""
        ...

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        """Return values to measure first, the most promising first: `knobs` was not empty."""
        ...

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        """Schedule the whole function by concrete instructions, which anybody can replay.

        Raises Refused, or what TVM raises, if the values make no program.
        """
        ...
