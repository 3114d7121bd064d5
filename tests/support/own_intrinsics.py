"""A program whose trace names intrinsics of Loopwright's own, and which of them were asked for."""

from __future__ import annotations

import pytest

from loopwright.codegen.program import schedule
from loopwright.codegen.program.intrinsics import register_named
from loopwright.codegen.serialization import trace_to_json
from tests.support import rule_programs
from tuner.space.builtin import builtin_space

WORKLOAD = rule_programs.softmax(2, 3, 64)


def trace() -> str:
    """Return a trace of `WORKLOAD` that reduces rows by intrinsics."""
    space = builtin_space(WORKLOAD, rule_programs.TARGET, seed=1)
    replayed = [trace_to_json(made.trace) for seed in space.seeds if (made := space.replay(seed, 1)) is not None]
    return next(each for each in replayed if "loopwright.row" in each)


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the intrinsics that replays register from now on."""
    named: list[str] = []

    def register(name: str) -> bool:
        named.append(name)
        return register_named(name)

    monkeypatch.setattr(schedule, "register_named", register)
    return named
