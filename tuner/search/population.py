"""The population: every program that the search has proposed, and what became of it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from tuner.search.individual import Individual
from tuner.search.neighbourhood import Neighbourhood


@dataclass(slots=True)
class Entry:
    """``candidate`` is the hash under which the program was submitted; ``latency`` is in seconds, if measured."""

    individual: Individual
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
        measured = [(entry.latency, entry) for entry in self._entries.values() if entry.latency is not None]
        return [entry for _, entry in heapq.nsmallest(count, measured, key=lambda pair: pair[0])]

    def select(self, individual: Individual) -> bool:
        """Take a program into the batch that is being made. Returns False if it was proposed before."""
        if individual.program in self._entries:
            return False
        self._entries[individual.program] = Entry(individual)
        return True

    def submit(self, individual: Individual, candidate: str) -> None:
        """Give a program its candidate's hash."""
        self._entries[individual.program] = self._submitted[candidate] = Entry(individual, candidate=candidate)
        self.neighbourhood.observe(individual.vector)

    def observe(self, candidate: str, latency: float | None) -> Individual:
        """Record the result of a submitted program: its latency, or None if it has none. Returns the program."""
        entry = self._submitted[candidate]
        entry.latency = latency
        return entry.individual
