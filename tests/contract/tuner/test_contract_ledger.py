"""The ledger in memory keeps to the contract that the durable one keeps to."""

from __future__ import annotations

import pytest

from tuner.ports import Ledger
from tuner.testing.ledger_contract import LedgerContract, Reopen
from tuner.testing.memory_ledger import MemoryLedger


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self) -> Ledger:
        return MemoryLedger(tasks=2)

    @pytest.fixture
    def reopen(self) -> Reopen:
        return lambda ledger: ledger
