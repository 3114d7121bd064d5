"""The service's durable ledger keeps to the contract of the tuner's port."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from service.ledger import DatabaseLedger
from tests.contract.db.conftest import World
from tuner.testing.ledger_contract import LedgerContract


class TestDatabaseLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, world: World) -> DatabaseLedger:
        world.job("a", "b")
        return claimed_ledger(world)

    @pytest.fixture
    def reopen(self, world: World) -> Callable[[DatabaseLedger], DatabaseLedger]:
        """The lease ends, and another run claims the job."""

        def reopened(_: DatabaseLedger) -> DatabaseLedger:
            world.clock.forward(3600)
            return claimed_ledger(world)

        return reopened


def claimed_ledger(world: World) -> DatabaseLedger:
    claimed = world.claim()
    tasks = world.db.tasks.of_job(claimed.job.id)
    for task in tasks:
        assert task.state == "running" or world.db.tasks.try_start(task.id, claimed.lease_token)
    return DatabaseLedger(world.db, claimed, tasks, budget=32)
