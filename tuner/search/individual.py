"""A program within the search: one accepted point of a design space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.serialization import trace_to_json
from tuner.search.drafts import Draft
from tuner.space.design_space import sampling_instructions
from tuner.types import MeasureCandidate, Origin


@dataclass
class Individual:
    """``program`` is TVM's structural hash of the scheduled module: a name within this process only."""

    schedule: Schedule
    origin: Origin
    program: int
    parent: str | None

    @classmethod
    def of(cls, schedule: Schedule, origin: Origin, parent: str | None = None) -> Individual:
        return cls(schedule, origin, tvm_ffi.structural_hash(schedule.mod), parent)

    @cached_property
    def draft(self) -> Draft:
        """Its trace without what post-processors added: what mutation and crossover work on."""
        trace = self.schedule.trace.simplified(remove_postproc=True)
        # TVM's mutators draw by the order of the decisions, which `simplified` leaves to chance.
        decisions = dict(trace.decisions)
        decided = {inst: decisions[inst] for inst in sampling_instructions(trace) if inst in decisions}
        return Draft.of(Trace(trace.insts, decided))

    def candidate(self, predicted: float | None, features: bytes) -> MeasureCandidate:
        """As a value for the ledger. The whole trace goes along, so that builders need no post-processors."""
        return MeasureCandidate(trace_to_json(self.schedule.trace), self.origin, predicted, self.parent, features)
