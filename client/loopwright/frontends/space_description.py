"""A user's design space in words: its choices, and how many programs they make."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from loopwright import frontends
from loopwright.codegen.rule import knob_names
from loopwright.extras import require_tvm
from loopwright.frontends import stochastic
from loopwright.model import ModelOptions, as_model

_DRAWS = 16
"""Times that a trace is replayed, to see whether the choices that come later depend on those before."""


@dataclass(frozen=True, slots=True)
class StochasticChoice:
    """A place where a trace chooses. ``options``: how many ways there are, the least and the most where they depend
    on the choices before; None where TVM does not say."""

    instruction: str
    """The instruction of the trace, such as ``SamplePerfectTile``."""
    about: str
    """What it is about, such as a loop and its extent."""
    options: tuple[int, int] | None
    """How many ways there are: at least and at most, if they depend on the choices before; None if TVM does not say."""

    def __str__(self) -> str:
        return f"{self.instruction} {self.about}: {_range(self.options)}"


@dataclass(frozen=True, slots=True)
class SpaceDescription:
    """One entry a trace: its choices in order."""

    traces: tuple[tuple[StochasticChoice, ...], ...]
    """For each trace, its choices in order."""

    @property
    def size(self) -> tuple[int, int]:
        """How many programs the space holds at least and at most, by the choices whose options are known."""
        known = [[choice.options for choice in choices if choice.options] for choices in self.traces]
        return (
            sum(math.prod(low for low, _ in options) for options in known),
            sum(math.prod(high for _, high in options) for options in known),
        )

    @property
    def is_exact(self) -> bool:
        """Whether the options of every choice are known."""
        return all(choice.options is not None for choices in self.traces for choice in choices)

    def __str__(self) -> str:
        lines = [f"{_range(self.size)}{'' if self.is_exact else ' for each of the choices that cannot be counted'}"]
        for number, choices in enumerate(self.traces):
            lines += [f"trace {number}:"] if len(self.traces) > 1 else []
            lines += [f"  {choice}" for choice in choices] or ["  no choices: a fixed schedule"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{number}</td><td>{choice.instruction}</td><td>{choice.about}</td>"
            f"<td style='text-align:right'>{_range(choice.options)}</td></tr>"
            for number, choices in enumerate(self.traces)
            for choice in choices
        )
        head = "<tr><th>trace</th><th>choice</th><th>about</th><th>options</th></tr>"
        return f"<table><caption>{_range(self.size)}</caption>{head}{rows}</table>"


def explain(space: stochastic.Space, mod: Any, **options: Unpack[ModelOptions]) -> SpaceDescription:
    """Return the choices that a design space makes for a program, and its size. Nothing is sent.

    Args:
        space: as for `Client.submit`: a function ``f(sch)``, a trace, or a list of traces.
        mod: a model with one PrimFunc, or a `Model`.
        options: the model's, as `Model` has them.

    Raises:
        ValueError: the space is None (the built-in one is made by the service), or the model has not one PrimFunc.
    """
    if space is None:
        raise ValueError("explain() describes a space of your own; the service generates the built-in space")
    model = as_model(mod, **options)
    traces = stochastic.to_traces(space, model)
    assert traces is not None
    require_tvm()
    from loopwright.codegen.functions import prim_funcs
    from loopwright.codegen.program.digest import normal_form

    funcs = prim_funcs(frontends.to_program(model).module)
    if len(funcs) != 1:
        raise ValueError(f"explain() describes the space of one function, and this model has {len(funcs)} functions")
    workload = normal_form(funcs[0][1])
    return SpaceDescription(tuple(_choices(trace, workload) for trace in traces))


def _choices(trace: list[Any], workload: Any) -> tuple[StochasticChoice, ...]:
    draws = [_draw(trace, workload, seed) for seed in range(1, _DRAWS + 1)]
    return tuple(_merged(drawn) for drawn in zip(*draws, strict=True))


def _merged(drawn: Sequence[StochasticChoice]) -> StochasticChoice:
    counts = [choice.options for choice in drawn if choice.options]
    if len(counts) < len(drawn):
        return drawn[0]
    low, high = min(low for low, _ in counts), max(high for _, high in counts)
    return StochasticChoice(drawn[0].instruction, drawn[0].about, (low, high))


def _draw(trace: list[Any], workload: Any, seed: int) -> list[StochasticChoice]:
    """Return the choices of one replay with fresh decisions."""
    from loopwright.codegen.program.schedule import apply_trace

    schedule = apply_trace(workload, [trace[0], []], seed)
    decisions = dict(schedule.trace.decisions)
    knobs = knob_names(schedule.trace.insts)
    return [
        _choice(inst, decisions.get(inst), knobs)
        for inst in schedule.trace.insts
        if inst.kind.name.startswith("Sample")
    ]


def _choice(inst: Any, decision: Any, knobs: dict[Any, str]) -> StochasticChoice:
    kind = str(inst.kind.name)
    if kind == "SamplePerfectTile":
        parts, innermost = int(inst.attrs[0]), int(inst.attrs[1])
        extent = math.prod(int(factor) for factor in decision)
        about = f"of a loop of {extent} into {parts}, innermost at most {innermost}"
        count = factorisations(extent, parts, innermost)
        return StochasticChoice(kind, about, (count, count))
    if kind == "SampleCategorical":
        candidates = [_plain(candidate) for candidate in inst.attrs[0]]
        knob = knobs.get(inst.outputs[0])
        of = "" if knob is None else f"of the knob {knob} "
        return StochasticChoice(
            kind, f"{of}among {', '.join(map(str, candidates))}", (len(candidates), len(candidates))
        )
    return StochasticChoice(kind, "as the program allows", None)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


@functools.cache
def factorisations(extent: int, parts: int, innermost: int) -> int:
    """In how many ways ``extent`` is a product of ``parts`` factors, in order, the last one at most ``innermost``."""
    if parts == 1:
        return int(extent <= innermost)
    last = [factor for factor in range(1, min(extent, innermost) + 1) if extent % factor == 0]
    return sum(factorisations(extent // factor, parts - 1, extent // factor) for factor in last)


def _range(options: tuple[int, int] | None) -> str:
    if options is None:
        return "not counted"
    low, high = options
    return f"{low:,} option{'' if low == 1 else 's'}" if low == high else f"{low:,} to {high:,} options"
