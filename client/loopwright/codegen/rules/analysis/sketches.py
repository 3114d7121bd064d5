"""The sketches of rules: open traces that draw knobs, and finishing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, Rule, RuleRefused

_FIRST = 10
"""Seeds and neighbours of a function: a first batch of a search, and some to spare, since two may make one program."""


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
        """Return decided traces to measure first: the first choice of each rule, then the others, rule by rule."""
        chosen = self._choices()
        firsts = [(sketch, values) for sketch, choices in chosen for values in choices[:1]]
        others = [(sketch, values) for sketch, choices in chosen for values in choices[1:]]
        return [_decided(sketch, values) for sketch, values in (*firsts, *others)]

    def neighbours(self) -> list[Trace]:
        """Return traces that differ in one knob from the first seed, as many as `_FIRST` seeds lack.

        Of some, the rule may make no program, or that of another one.
        """
        chosen = [(sketch, choices) for sketch, choices in self._choices() if choices]
        missing = max(0, _FIRST - sum(len(choices) for _, choices in chosen))
        if not chosen:
            return []
        sketch, choices = chosen[0]
        known = [dict(values) for values in choices]
        near = [values for values in _neighbours(sketch.knobs, choices[0]) if values not in known]
        return [_decided(sketch, values) for values in near[:missing]]

    def _choices(self) -> list[tuple[_Sketch, list[Knobs]]]:
        """Return the seeds of each rule that has any."""
        sketches = [sketch for sketch in self._sketches.values() if sketch.rule not in self._without_seeds]
        return [(sketch, [*sketch.rule.seeds(sketch.program, self._machine)]) for sketch in sketches]

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


def _neighbours(knobs: tuple[Knob, ...], values: Knobs) -> Iterator[dict[str, int]]:
    """Yield values that differ in one knob: by one step of each knob down or up, and then by two."""
    for step in (-1, 1, -2, 2):
        for knob in knobs:
            place = knob.values.index(values[knob.name]) + step
            if 0 <= place < len(knob.values):
                yield {**values, knob.name: knob.values[place]}


def _decided(sketch: _Sketch, values: Knobs) -> Trace:
    draws = [inst for inst in sketch.trace.insts if str(inst.kind.name) == "SampleCategorical"]
    decisions = {draw: knob.values.index(values[knob.name]) for draw, knob in zip(draws, sketch.knobs, strict=True)}
    return Trace(sketch.trace.insts, decisions)
