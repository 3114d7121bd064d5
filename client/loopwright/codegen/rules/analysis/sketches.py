"""The sketches of rules: open traces that draw knobs, and finishing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, Rule, RuleRefused


@dataclass(frozen=True)
class _Sketch:
    rule: Rule
    program: AnalysedProgram
    knobs: tuple[Knob, ...]
    trace: Trace


class Sketches:
    """The sketches of all rules that apply to a function. Rules ``without_seeds`` have sketches only."""

    def __init__(
        self, mod: tvm.IRModule, machine: MachineLimits, rules: Sequence[Rule], without_seeds: Sequence[Rule] = ()
    ) -> None:
        self._machine = machine
        self._without_seeds = without_seeds
        self._sketches: dict[str, _Sketch] = {}
        program = AnalysedProgram.of(mod)
        if program is None:
            return
        for rule in (*rules, *without_seeds):
            knobs = rule.knobs(program, machine) if program.admits(rule.name) else ()
            if knobs:
                self._sketches[rule.name] = _Sketch(rule, program, knobs, _open_trace(mod, rule, knobs))

    @property
    def traces(self) -> list[Trace]:
        return [sketch.trace for sketch in self._sketches.values()]

    def seeds(self) -> list[Trace]:
        """Return decided traces to measure first: the best guess of each rule, then the second of each, and so on."""
        rows = [
            [_decided(sketch, values) for values in sketch.rule.seeds(sketch.program, self._machine)]
            for sketch in self._sketches.values()
            if sketch.rule not in self._without_seeds
        ]
        longest = max(map(len, rows), default=0)
        return [row[place] for place in range(longest) for row in rows if place < len(row)]

    def finish(self, schedule: Schedule) -> bool:
        """Schedule a function by the rule and the knobs that its sketch wrote down. Returns False if it is no sketch.

        Raises Refused, or what TVM raises, if the knobs make no program.
        """
        root = schedule.get_sblock("root")
        annotations = {str(key): value for key, value in schedule.get(root).annotations.items()}
        names = [key.removeprefix(RULE) for key in annotations if key.startswith(RULE)]
        if not names:
            return False
        schedule.enter_postproc()
        values: dict[str, int] = {}
        for key, value in annotations.items():
            if key.startswith((RULE, KNOB)):
                schedule.unannotate(root, key)
            if key.startswith(KNOB):
                values[key.removeprefix(KNOB)] = int(value)
        sketch = self._sketches.get(names[0])
        if sketch is None:
            raise RuleRefused(f"the rule {names[0]} does not apply to this function")
        sketch.rule.apply(schedule, sketch.program, self._machine, values)
        return True


def _open_trace(mod: tvm.IRModule, rule: Rule, knobs: tuple[Knob, ...]) -> Trace:
    schedule = new_schedule(mod)
    root = schedule.get_sblock("root")
    schedule.annotate(root, RULE + rule.name, rule.version)
    for knob in knobs:
        count = len(knob.values)
        value = schedule.sample_categorical(list(knob.values), [1.0 / count] * count)
        schedule.annotate(root, KNOB + knob.name, value)
    return Trace(schedule.trace.insts, {})


def _decided(sketch: _Sketch, values: Knobs) -> Trace:
    draws = [inst for inst in sketch.trace.insts if str(inst.kind.name) == "SampleCategorical"]
    decisions = {draw: knob.values.index(values[knob.name]) for draw, knob in zip(draws, sketch.knobs, strict=True)}
    return Trace(sketch.trace.insts, decisions)
