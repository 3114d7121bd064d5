"""The loop that most of the time goes to, and a static model of one iteration: what its instructions cost at least.

The model has no caches and no branch predictor: data is taken to be in the cache of level 1. So it says what the
instructions allow, and not what the program takes. `docs/guides/dashboard.md` describes it to users.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopwright.codegen.kinds import LoopBound
from tuner.inspection.answers import LoopModel
from tuner.inspection.listing import Line, Loop
from tuner.inspection.x86 import Work, work

_REGISTER = re.compile(r"%[xyz]mm(\d+)")
_MEMORY = re.compile(r"\([^)]*\)")
_ZERO = re.compile(r"xor\w*\s+(%[xyz]mm\d+)(, \1)+$")
"""An exclusive or of a register with itself, which is how zero is made."""
_REPLACES = re.compile(r"132|213")
"""Fused multiplications and additions that add to the product of what they write, and not to what was there."""


@dataclass(frozen=True, slots=True)
class PortModel:
    """What a core starts in one cycle, and after how many cycles a sum can be added to again.

    These are what x86 cores since Haswell and Zen 2 have at least, with vectors of their own width (Intel's and AMD's
    optimisation manuals; uops.info). Zen 4 takes two cycles for vectors of 512 bits, and some Xeons have one unit of
    that width: on these the share of the peak is what is said, the cycles are twice as many.
    """

    arithmetic: int = 2
    loads: int = 2
    stores: int = 1
    shuffles: int = 1
    instructions: int = 4
    latency: int = 4
    """Cycles from one fused multiplication and addition to the next that adds to its result."""


DEFAULT = PortModel()


def modelled(lines: Sequence[Line], loop: Loop, vector_bytes: int, ports: PortModel = DEFAULT) -> LoopModel:
    """Return the model of an iteration of a loop of x86 instructions on a core with vectors of so many bytes."""
    inside = [line.text for line in _inside(lines, loop)]
    total = sum(map(work, inside), Work())
    cycles = {
        LoopBound.ARITHMETIC: (total.fma + total.arithmetic) / ports.arithmetic,
        LoopBound.LOADS: total.loads / ports.loads,
        LoopBound.STORES: total.stores / ports.stores,
        LoopBound.SHUFFLES: total.shuffles / ports.shuffles,
        LoopBound.INSTRUCTIONS: total.instructions / ports.instructions,
        LoopBound.LATENCY: float(ports.latency * _chain(inside)),
    }
    bound = max(cycles, key=lambda each: cycles[each])
    peak = ports.arithmetic * vector_bytes * cycles[bound]
    return LoopModel(total, cycles[bound], bound, total.slot_bytes / peak)


def _inside(lines: Sequence[Line], loop: Loop) -> list[Line]:
    return [line for line in lines if loop.first < line.number <= loop.last and line.label is None]


def _chain(instructions: Sequence[str]) -> int:
    """Return the most instructions of an iteration that each add to the same register, which nothing sets anew."""
    added: Counter[str] = Counter()
    fresh: set[str] = set()
    for instruction in instructions:
        registers = _REGISTER.findall(_MEMORY.sub("", instruction))
        one = work(instruction)
        if not registers or one.stores:
            continue
        *sources, written = registers
        adds = written in sources if not one.fma else _REPLACES.search(instruction) is None
        if adds and (one.fma or one.arithmetic):
            added[written] += 1
        elif written not in sources or _ZERO.search(instruction) is not None:
            fresh.add(written)
    return max((count for register, count in added.items() if register not in fresh), default=0)


def hottest(lines: Sequence[Line], found: Sequence[Loop], calls: Mapping[int, int]) -> int | None:
    """Return the index of the loop that most of the time goes to, as far as code says; None if there is no loop.

    It is the innermost loop with the line of the program that a call of the function reaches most often: ``calls`` has
    how often, by line. Of several, as of a loop and its rest, it is the one with the most bytes of vectors.
    """
    ranked = []
    for index, loop in enumerate(found):
        if loop.innermost:
            inside = _inside(lines, loop)
            reached = max((calls.get(line.program_line or 0, 0) for line in inside), default=0)
            ranked.append((reached, sum(work(line.text).slot_bytes for line in inside), loop.depth, index))
    return max(ranked)[-1] if ranked else None
