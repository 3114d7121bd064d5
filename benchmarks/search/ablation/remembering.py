"""A fleet that measures each program once: a search of the same workload that proposes it again gets the same outcome.

So a workload's latencies are a fixed function of the program, and two searches with the same seed differ by what was
changed alone: they propose the same programs, in the same order, until the change makes a difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tuner.errors import RaceFailed
from tuner.ports import Fleet, Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.types import LOSSES, Failure, Measured, Outcome

SLOTS = 8
"""Requests in flight: one batch, so that builders and measurer are busy and every search learns with the same delay."""
Remember = Callable[[str, Outcome], None]


class RememberingFleet:
    """See `tuner.ports.Fleet`. Outcomes come back one at a time, in the order of the requests.

    Args:
        known: Outcomes by `program_of`; new ones are added, and reported to ``remember``. Programs are sampled in full.
    """

    slots = SLOTS

    def __init__(self, fleet: Fleet, known: dict[str, Outcome], remember: Remember) -> None:
        self._fleet = fleet
        self._known = known
        self._remember = remember
        self._queue: list[tuple[str, str]] = []
        """Keys of the requests in flight, with their programs."""
        self._arrived: dict[str, Outcome] = {}
        """Outcomes that say nothing about their program: they count once."""

    def submit(self, request: MeasureRequest) -> None:
        program = program_of(request.module_json, request.trace_json)
        waiting = {other for _, other in self._queue}
        self._queue.append((request.key, program))
        if program not in self._known and program not in waiting:
            self._fleet.submit(replace(request, key=program, cutoff=None))

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        if not self._queue:
            return []
        key, program = self._queue[0]
        if program not in self._known and program not in self._arrived:
            for other, outcome in self._fleet.collect(timeout):
                self._take(other, outcome)
        found = self._known.get(program) or self._arrived.pop(program, None)
        if found is None:
            return []
        del self._queue[0]
        return [(key, found)]

    def _take(self, program: str, outcome: Outcome) -> None:
        if isinstance(outcome, Failure) and outcome.kind in LOSSES:
            self._arrived[program] = outcome
            return
        self._known[program] = outcome
        self._remember(program, outcome)

    def forward(self) -> None:
        self._fleet.forward()

    def prepare(self, module_json: str) -> None:
        """Nothing is built for races."""

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        """Return what is known: the search has ended, and its answer is the best that it measured."""
        contenders = {
            key: found
            for key, trace_json in request.contenders.items()
            for found in self._raced(request.module_json, trace_json)
        }
        baseline = next(self._raced(request.module_json, None), Raced((1.0,), 0.0, 0.0))
        return RaceResult(baseline, dict(contenders))

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def _raced(self, module_json: str, trace_json: str | None) -> Iterator[Raced]:
        outcome = self._known.get(program_of(module_json, trace_json))
        if isinstance(outcome, Measured):
            yield Raced(outcome.run_secs, 0.0, 0.0)

    def abandon(self) -> None:
        self._queue.clear()
        self._fleet.abandon()


def program_of(module_json: str, trace_json: str | None) -> str:
    return hashlib.sha256(f"{module_json} {trace_json}".encode()).hexdigest()[:16]
