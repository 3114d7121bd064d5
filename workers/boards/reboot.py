"""Reboot a board with the operator's command, on the worker host, and not too often."""

from __future__ import annotations

import logging
import math
import subprocess
import time
from collections.abc import Callable

from workers.boards.config import Board

AFTER_LOSSES = 3
"""Times in a row that the board was lost and did not come back by itself. Not tuned."""
INTERVAL_SECONDS = 600.0
"""Between two reboots of a board. Not tuned."""
_COMMAND_SECONDS = 60.0

log = logging.getLogger("loopwright.rpc_devices")


class Reboot:
    """Counts the losses of a board, and runs its reboot command if there is one."""

    def __init__(self, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._clock = clock
        self._losses = 0
        self._last = -math.inf

    def found(self) -> None:
        """Note that the board answers."""
        self._losses = 0

    def lost(self) -> bool:
        """Note a loss. Return whether the board was rebooted, so that it is worth waiting for."""
        self._losses += 1
        if not self._board.reboot or self._losses < AFTER_LOSSES or self._clock() - self._last < INTERVAL_SECONDS:
            return False
        self._last, self._losses = self._clock(), 0
        log.warning("RPC device %s was lost %d times in a row; it is rebooted", self._board.name, AFTER_LOSSES)
        try:
            done = subprocess.run(
                self._board.reboot,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("the reboot command of RPC device %s failed: %s", self._board.name, error)
            return False
        if done.returncode:
            log.warning(
                "the reboot command of RPC device %s ended with status %d: %s",
                self._board.name,
                done.returncode,
                done.stderr.strip()[-500:],
            )
        return done.returncode == 0
