"""The yardstick of GPUs behind walls, in a child that hides PyTorch from TVM; on the CPU."""

from __future__ import annotations

import pytest

from tests.integration.workers.children import FUNCTIONS, name
from workers.child.child_calls import MEASURE
from workers.child.warm_child import WarmChild
from workers.walls.levels import Level


@pytest.mark.parametrize("level", [Level.NAMESPACES, pytest.param(Level.LANDLOCK, marks=pytest.mark.whole)])
def test_pytorch_computes_behind_walls(level: Level) -> None:
    child = WarmChild([MEASURE.module, FUNCTIONS], level=level)
    try:
        answer = child.call(name("product_of_pytorch"), {}, 60)
    finally:
        child.close()
    assert answer["hidden"]
    assert answer["error"] < 1e-4
