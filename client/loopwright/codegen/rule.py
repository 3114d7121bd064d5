"""How a trace says which of Loopwright's rules made it, and by which knobs. Imports no TVM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

RULE = "loopwright.rule."
"""Before a rule's name: an annotation whose value is the rule's version."""
KNOB = "loopwright.knob."
"""Before a knob's name: an annotation whose value is the knob's."""


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule of the design space and the values of its knobs, by name."""

    name: str
    version: int
    knobs: dict[str, int]


def knob_names(instructions: Iterable[Any]) -> dict[Any, str]:
    """Return the names of the knobs in a trace's instructions (``Trace.insts``), by the value drawn for each."""
    return {
        inst.inputs[1]: str(inst.attrs[0]).removeprefix(KNOB)
        for inst in instructions
        if str(inst.kind.name) == "Annotate" and str(inst.attrs[0]).startswith(KNOB)
    }


def applied_rule(trace: list[Any] | None) -> AppliedRule | None:
    """Return the rule that made a trace ``[instructions, decisions]``; None for one of TVM's rules or of a user's."""
    if trace is None:
        return None
    instructions, decisions = trace
    decided = dict(decisions)
    drawn: dict[str, int] = {}
    found: dict[str, int] = {}
    for position, (kind, inputs, attributes, outputs) in enumerate(instructions):
        if kind == "SampleCategorical" and position in decided:
            drawn[outputs[0]] = attributes[0][decided[position]]
        elif kind == "Annotate" and str(attributes[0]).startswith((RULE, KNOB)):
            value = inputs[1]
            found[attributes[0]] = drawn[value] if isinstance(value, str) else int(value)
    name = next((key.removeprefix(RULE) for key in found if key.startswith(RULE)), None)
    if name is None:
        return None
    knobs = {key.removeprefix(KNOB): value for key, value in found.items() if key.startswith(KNOB)}
    return AppliedRule(name, found[RULE + name], knobs)
