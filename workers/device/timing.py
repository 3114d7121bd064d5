"""The real device: what a measurer's child runs."""

from workers.device.measure import measure
from workers.device.race import race

__all__ = ["measure", "race"]
