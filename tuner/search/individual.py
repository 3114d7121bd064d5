"""An individual: one accepted program of a design space, as the search handles it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.kinds import Origin, Predictor
from loopwright.codegen.serialization import trace_to_json
from tuner.cost_model.features import Features, extract, to_bytes
from tuner.search.encoding import DecisionVector, Encoding
from tuner.space.design_space import DesignSpace
from tuner.types import MeasureCandidate


@dataclass
class Individual:
    """``program`` is TVM's structural hash of the scheduled module, which is valid in this process only.

    ``parent`` is the hash of the measured candidate that the individual descends from, if any; ``predicted`` the
    value with which the model ``predicted_by`` selected it.
    """

    space: DesignSpace
    schedule: Schedule
    origin: Origin
    program: int
    parent: str | None
    predicted: float | None = None
    predicted_by: Predictor | None = None

    @classmethod
    def of(cls, space: DesignSpace, schedule: Schedule, origin: Origin, parent: str | None = None) -> Individual:
        return cls(space, schedule, origin, tvm_ffi.structural_hash(schedule.mod), parent)

    @classmethod
    def replay(
        cls, space: DesignSpace, trace: Trace, rng: np.random.Generator, origin: Origin, parent: str | None = None
    ) -> Individual | None:
        """Replay a trace, drawing what it leaves open. None if the space rejects it."""
        schedule = space.replay(trace, int(rng.integers(1, 2**31 - 1)))
        return None if schedule is None else cls.of(space, schedule, origin, parent)

    @cached_property
    def vector(self) -> DecisionVector:
        """The decisions of the trace without postprocessing, on which mutation works."""
        return DecisionVector.of(self.schedule.trace.simplified(remove_postproc=True))

    @cached_property
    def encoding(self) -> Encoding:
        return self.vector.encode()

    @cached_property
    def features(self) -> Features:
        """float32 [stores, 164]. Extracting them takes about 1 ms."""
        return extract(self.space.context, [self.schedule])[0]

    def candidate(self) -> MeasureCandidate:
        """Return the individual as the ledger stores it, with the whole trace: builders need no postprocessors."""
        trace_json = trace_to_json(self.schedule.trace)
        features = to_bytes(self.features)
        return MeasureCandidate(trace_json, self.origin, self.predicted, self.parent, features, self.predicted_by)
