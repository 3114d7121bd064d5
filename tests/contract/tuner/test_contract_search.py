"""The search in this process keeps to the contract that the one behind walls keeps to."""

from __future__ import annotations

import pytest

from tuner.search.searcher import Searcher
from tuner.testing.search_contract import Opens, SearchContract


class TestSearcher(SearchContract):
    @pytest.fixture
    def opens(self) -> Opens:
        return Searcher
