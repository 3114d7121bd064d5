"""Proposers: where the programs of a batch come from, one a file."""

from __future__ import annotations

from typing import Protocol

from tuner.search.individual import Individual
from tuner.search.population import Population


class Proposer(Protocol):
    def propose(self, population: Population, count: int) -> list[Individual]:
        """Select up to ``count`` programs that were not proposed before; fewer if the proposer has no more."""
        ...
