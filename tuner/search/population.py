"""The population: every program that the search knows, and what became of it."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuner.search.individual import Individual
from tuner.search.neighbourhood import Neighbourhood


class State(enum.Enum):
    """POOLED: may be proposed. PENDING: proposed, without a result yet. FAILED: has no latency, and gets none."""

    POOLED = enum.auto()
    PENDING = enum.auto()
    MEASURED = enum.auto()
    FAILED = enum.auto()


@dataclass(slots=True)
class Entry:
    """``candidate`` is the hash under which the program was submitted; ``latency`` is in seconds."""

    individual: Individual
    state: State
    candidate: str | None = None
    latency: float | None = None

    @property
    def ancestor(self) -> str | None:
        """Hash of the candidate that a child of this program descends from: itself, if it was submitted."""
        return self.candidate or self.individual.parent


class Population:
    """Entries by program hash, in the order in which they entered their states."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._programs: dict[str, int] = {}
        """Candidate hash -> program hash."""
        self.neighbourhood = Neighbourhood()

    def __contains__(self, program: int) -> bool:
        return program in self._entries

    def __getitem__(self, program: int) -> Entry:
        return self._entries[program]

    def pooled(self) -> list[Individual]:
        return [entry.individual for entry in self._entries.values() if entry.state is State.POOLED]

    def pending(self) -> list[Individual]:
        """Return the submitted programs without a result."""
        return [e.individual for e in self._entries.values() if e.state is State.PENDING and e.candidate is not None]

    def fastest(self, count: int) -> list[Entry]:
        """Return the ``count`` fastest measured entries, the fastest first."""
        measured = [entry for entry in self._entries.values() if entry.state is State.MEASURED]
        return heapq.nsmallest(count, measured, key=lambda entry: entry.latency or 0.0)

    def pool(self, individuals: Iterable[Individual]) -> None:
        """Add programs that the population does not contain."""
        for individual in individuals:
            self._enter(Entry(individual, State.POOLED))
            self.neighbourhood.observe(individual.vector)

    def retain(self, programs: Sequence[int]) -> None:
        """Drop pooled programs that are not listed, and order the others as they are listed."""
        pooled = {individual.program: self._entries.pop(individual.program) for individual in self.pooled()}
        self._entries |= {program: pooled[program] for program in programs if program in pooled}

    def select(self, individual: Individual) -> bool:
        """Take a program into the batch that is being made. Returns False if it was proposed before."""
        known = self._entries.get(individual.program)
        if known is not None and known.state is not State.POOLED:
            return False
        self._enter(Entry(individual, State.PENDING))
        return True

    def submit(self, individual: Individual, candidate: str) -> None:
        """Make a program pending under a candidate's hash."""
        self._enter(Entry(individual, State.PENDING, candidate))
        self._programs[candidate] = individual.program
        self.neighbourhood.observe(individual.vector)

    def observe(self, candidate: str, latency: float | None) -> Individual:
        """Record the result of a submitted program: its latency, or None if it has none. Returns the program."""
        individual = self._entries[self._programs[candidate]].individual
        state = State.FAILED if latency is None else State.MEASURED
        self._enter(Entry(individual, state, candidate, latency))
        return individual

    def _enter(self, entry: Entry) -> None:
        self._entries.pop(entry.individual.program, None)
        self._entries[entry.individual.program] = entry
