"""A start of the service outlasts a start of Ray that failed; what else ends a part ends the service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.process.exit_status import ExitStatus
from service.process.kept_log import KeptLog
from service.process.serve_error import ServeError
from service.process.supervisor import Supervisor
from service.settings import Settings
from tests.support.waiting import wait_for


class Started(Supervisor):
    """Its parts print one line and end with the next of some statuses; one that has none goes on."""

    def __init__(self, folder: Path, *statuses: int, api_processes: int = 1) -> None:
        super().__init__(Settings(data_dir=folder, api_processes=api_processes))
        self.folder = folder
        self.left = list(statuses)
        self.starts = 0

    def _start(self, role: str) -> None:
        self.starts += 1
        status = self.left.pop(0) if self.left else None
        program = "import time; time.sleep(600)"
        if status is not None:
            program = f"print('loopwright: part {self.starts} ends'); raise SystemExit({status})"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        self._processes[role] = process
        self._logs[role] = KeptLog(process.stdout, self.folder / f"{role}.log")

    def look(self, starts: int) -> bool:
        self._look_after_start()
        return self.starts == starts

    def end(self) -> None:
        self._stop()


def test_a_controller_that_ray_kept_from_starting_is_started_again(tmp_path: Path) -> None:
    supervisor = Started(tmp_path, ExitStatus.RAY_LOST, ExitStatus.RAY_LOST)
    try:
        supervisor._start("controller")
        wait_for("a third start", lambda: supervisor.look(3), 60)
        assert not supervisor.look(4)
    finally:
        supervisor.end()


@pytest.mark.parametrize("status", [1, ExitStatus.DISK_FULL])
def test_another_end_of_a_part_ends_the_start(tmp_path: Path, status: int) -> None:
    supervisor = Started(tmp_path, status)
    supervisor._start("api")
    with pytest.raises(ServeError, match="part 1 ends") as ended:
        wait_for("the end", lambda: supervisor.look(2), 60)
    assert ended.value.status == status
    assert supervisor.starts == 1


def test_an_api_process_that_ray_kept_from_starting_leaves_the_others_alone(tmp_path: Path) -> None:
    supervisor = Started(tmp_path, ExitStatus.RAY_LOST, api_processes=3)
    try:
        for name in ("api", "api-2", "api-3"):
            supervisor._start(name)
        wait_for("a fourth start", lambda: supervisor.look(4), 60)
        assert sorted(supervisor._processes) == ["api", "api-2", "api-3"]
    finally:
        supervisor.end()
    assert all(process.poll() is not None for process in supervisor._processes.values())
