"""The real device: what a measurer's child runs."""

from workers.measure import measure
from workers.race import race

__all__ = ["measure", "race"]
