"""The warm child that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.workers.children import FUNCTIONS, LEVEL
from workers.child.warm_child import WarmChild


@pytest.fixture(scope="module")
def child() -> Iterator[WarmChild]:
    """Shared by the tests: whatever one does to it, the next call finds it working or starts another."""
    child = WarmChild([FUNCTIONS], level=LEVEL, programs=True)
    yield child
    child.close()
