"""The population: every program that the search has proposed, and what became of it."""

from __future__ import annotations

import enum
import heapq
from dataclasses import dataclass

from tuner.search.individual import Individual
from tuner.search.neighbourhood import Neighbourhood


class State(enum.Enum):
    """PENDING: without a result yet. FAILED: has no latency, and gets none."""

    PENDING = enum.auto()
    MEASURED = enum.auto()
    FAILED = enum.auto()


@dataclass(slots=True)
class Entry:
    """``candidate`` is the hash under which the program was submitted; ``latency`` is in seconds."""

    individual: Individual
    state: State = State.PENDING
    candidate: str | None = None
    latency: float | None = None


class Population:
    """Entries by program hash."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._submitted: dict[str, Entry] = {}
        """By candidate hash."""
        self.neighbourhood = Neighbourhood()

    def __contains__(self, program: int) -> bool:
        return program in self._entries

    def fastest(self, count: int) -> list[Entry]:
        """Return the ``count`` fastest measured entries, the fastest first."""
        measured = [entry for entry in self._entries.values() if entry.state is State.MEASURED]
        return heapq.nsmallest(count, measured, key=lambda entry: entry.latency or 0.0)

    def select(self, individual: Individual) -> bool:
        """Take a program into the batch that is being made. Returns False if it was proposed before."""
        if individual.program in self._entries:
            return False
        self._entries[individual.program] = Entry(individual)
        return True

    def submit(self, individual: Individual, candidate: str) -> None:
        """Make a program pending under a candidate's hash."""
        self._entries[individual.program] = self._submitted[candidate] = Entry(individual, candidate=candidate)
        self.neighbourhood.observe(individual.vector)

    def observe(self, candidate: str, latency: float | None) -> Individual:
        """Record the result of a submitted program: its latency, or None if it has none. Returns the program."""
        entry = self._submitted[candidate]
        entry.state = State.FAILED if latency is None else State.MEASURED
        entry.latency = latency
        return entry.individual
