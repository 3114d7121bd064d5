"""The real device: what a measurer's child runs, with the threads that a user's process has."""

from loopwright.codegen.host import pool
from workers.device.measure import measure
from workers.device.race import race

__all__ = ["measure", "race"]

pool.install()
