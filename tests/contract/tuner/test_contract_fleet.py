"""The simulated fleet keeps to the contract that the real one keeps to."""

from __future__ import annotations

import pytest

from tuner.ports import Fleet
from tuner.testing.fleet_contract import FleetContract
from tuner.testing.simulated_fleet import SimulatedFleet


class TestSimulatedFleet(FleetContract):
    @pytest.fixture
    def fleet(self) -> Fleet:
        return SimulatedFleet()
