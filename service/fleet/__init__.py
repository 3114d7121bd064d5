"""Endpoints and upkeep of the fleet: workers, and the targets that they offer."""
