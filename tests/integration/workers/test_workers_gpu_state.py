"""The state of a GPU, read behind the walls of a measurer's child through libraries in place of NVIDIA's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.workers.children import FUNCTIONS, name
from tests.support import played_driver
from tuner.codec import decode
from tuner.types import DeviceState
from workers.child.warm_child import WarmChild
from workers.messages import Device
from workers.walls.levels import Level, obstacles

LEVELS = [Level.NONE, *(level for level, obstacle in obstacles().items() if obstacle is None)]


def states(level: Level, *indices: int) -> list[DeviceState | None]:
    """Return what a child reads of CUDA's devices."""
    child = WarmChild([FUNCTIONS], level=level, devices=True)
    try:
        devices = [Device("cuda", index) for index in indices]
        return [decode(DeviceState | None, state) for state in child.stream(name("gpu_states"), (devices,), 30)]
    finally:
        child.close()


@pytest.mark.parametrize("level", LEVELS)
def test_a_child_reads_the_state_of_its_gpu_behind_any_walls(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played_driver.install(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert states(level, played_driver.INDEX, played_driver.INDEX + 1) == [played_driver.TOLD, None]
