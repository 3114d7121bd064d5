"""The kernel and the driver under a timing."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from workers.device.system import system


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", "535.104.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65  Release Build  (builder@host)", "580.65"),
    ],
)
def test_a_gpus_driver_is_told(tmp_path: Path, line: str, version: str) -> None:
    driver = tmp_path / "version"
    driver.write_text(f"{line}\nGCC version:  gcc version 12.2.0\n")
    assert system("cuda", driver) == f"{platform.system()} {platform.release()}, NVIDIA {version}"
    assert system("cpu", driver) == f"{platform.system()} {platform.release()}"


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    kernel = system("cpu")
    assert platform.release() in kernel
    assert system("cuda", tmp_path / "none") == kernel
    (tmp_path / "odd").write_text("no version here\n")
    assert system("cuda", tmp_path / "odd") == kernel
