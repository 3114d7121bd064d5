"""The log of a process that writes to a pipe: files of limited size, of which the newest few are kept.

A process cannot rotate its own log completely: tracebacks, native code and children write past Python's logging.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Any

FILE_BYTES = 10 * 2**20
OLD_FILES = 3
"""``NAME.1`` to ``NAME.3``; the oldest is removed."""
_LINE_BYTES = 64 * 2**10
"""A longer line is written as several, so that no line exceeds a file."""
_FLUSH_SECONDS = 2.0


class _File(RotatingFileHandler):
    """Says on stderr what it cannot write, and once why."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._complained = False

    def handleError(self, record: logging.LogRecord) -> None:
        path = Path(self.baseFilename)
        if not self._complained:
            self._complained = True
            print(
                f"loopwright: {path} cannot be written ({sys.exc_info()[1]}); what it would have had comes here",
                file=sys.stderr,
            )
        print(f"{path.name}: {record.getMessage()}", file=sys.stderr, flush=True)


class KeptLog:
    """Copies ``pipe`` to ``path`` in a thread, until all writers have closed the pipe."""

    def __init__(
        self, pipe: IO[bytes], path: Path, *, file_bytes: int = FILE_BYTES, old_files: int = OLD_FILES
    ) -> None:
        self.path = path
        # What cannot be written (a full disk) goes to stderr, and the pipe is emptied in any case: the writer must not
        # wait.
        self._file = _File(
            path, maxBytes=file_bytes, backupCount=old_files, encoding="utf-8", errors="backslashreplace"
        )
        self._thread = threading.Thread(target=self._write, args=(pipe,), name=f"log {path.name}", daemon=True)
        self._thread.start()

    def flush(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Wait until the last output of a process that has ended is written, or until ``seconds`` have passed.

        Its children may keep the pipe open.
        """
        self._thread.join(seconds)

    def _write(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(_LINE_BYTES):
                text = line.decode(errors="backslashreplace").removesuffix("\n")
                self._file.emit(logging.makeLogRecord({"msg": text}))
        with contextlib.suppress(OSError):
            self._file.close()
