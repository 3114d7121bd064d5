"""A finished trace says which rule made it, and by which knobs, without TVM."""

from __future__ import annotations

import json

import loopwright
from loopwright.codegen.rule import AppliedRule, applied_rule
from loopwright.codegen.serialization import trace_to_json
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET
from tuner.space.builtin import builtin_space, stock_space


def test_the_rule_and_its_knobs_are_read_from_a_trace() -> None:
    space = builtin_space(programs.product(1, 96, 40), TARGET, seed=1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    trace = json.loads(trace_to_json(schedule.trace))
    assert applied_rule(trace) == AppliedRule("gemv", 2, {"block": 256, "at_once": 8})


def test_explain_names_the_knobs_of_a_trace() -> None:
    mod = programs.product(1, 96, 40)
    space = builtin_space(mod, TARGET, seed=1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    explained = str(loopwright.explain(json.loads(trace_to_json(schedule.trace)), mod))
    assert "of the knob block among 64, 128, 256, 512, 1024, 2048: 6 options" in explained
    assert "of the knob at_once among 1, 2, 4, 8: 4 options" in explained


def test_other_traces_have_none() -> None:
    space = stock_space(programs.product(8, 8, 8), TARGET, seed=1)
    schedule = space.replay(space.traces[0], 1)
    assert schedule is not None
    assert applied_rule(json.loads(trace_to_json(schedule.trace))) is None
    assert applied_rule([[], []]) is None
    assert applied_rule(None) is None
