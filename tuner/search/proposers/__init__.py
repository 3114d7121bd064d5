"""Proposers: where the programs of a batch come from, one a file."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.surrogate import Pause


class Proposal(NamedTuple):
    """A program selected for measuring, with its acquisition value if the surrogate selected it."""

    individual: Individual
    predicted: float | None = None


class Proposer(Protocol):
    def propose(self, population: Population, count: int, pause: Pause) -> list[Proposal]:
        """Select up to ``count`` programs that were not proposed before; fewer if the proposer has no more."""
        ...
