"""The exit of a process that cannot continue: a status for programs, and one line for people."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from db.errors import AccessRefused, DatabaseDamaged, DiskFull, SchemaTooNew, Unavailable
from service.settings import Settings


class ExitStatus(enum.IntEnum):
    """Named by sysexits.h where that has a name. docs/guides/recovery.md lists them."""

    FAILED = 1
    DATABASE_DAMAGED = os.EX_DATAERR
    DATABASE_AWAY = os.EX_UNAVAILABLE
    DATA_DIRECTORY = os.EX_CANTCREAT
    DISK_FULL = os.EX_IOERR
    RAY_LOST = os.EX_TEMPFAIL
    DATABASE_REFUSED = os.EX_NOPERM
    SCHEMA_TOO_NEW = os.EX_CONFIG

    @property
    def is_final(self) -> bool:
        """Return whether a new start would end the same way until a person has done something."""
        return self in _FINAL


_FINAL = frozenset(
    {
        ExitStatus.DATABASE_DAMAGED,
        ExitStatus.DATA_DIRECTORY,
        ExitStatus.DISK_FULL,
        ExitStatus.DATABASE_REFUSED,
        ExitStatus.SCHEMA_TOO_NEW,
    }
)
_FULL = (errno.ENOSPC, errno.EDQUOT)


def status_of(number: int) -> ExitStatus:
    """Return the status that a process ended with; FAILED for a signal and for statuses of others."""
    try:
        return ExitStatus(number)
    except ValueError:
        return ExitStatus.FAILED


def leave(status: ExitStatus, reason: str) -> NoReturn:
    """Print one line to stderr and exit."""
    print(f"loopwright: {reason}", file=sys.stderr, flush=True)
    raise SystemExit(int(status))


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Exit with a status and one line if the block raises an error of the process's environment."""
    try:
        yield
    except SchemaTooNew as error:
        leave(
            ExitStatus.SCHEMA_TOO_NEW,
            f"another version has made this database ({error}). Run that version, restore a backup of this one, or "
            "begin with a new data directory",
        )
    except DatabaseDamaged as error:
        leave(
            ExitStatus.DATABASE_DAMAGED,
            f"{error}. Nothing more is written to it; restore it from a backup, or recover what can be read with "
            "'sqlite3 FILE .recover'",
        )
    except DiskFull as error:
        leave(ExitStatus.DISK_FULL, f"{error}. Make room on it and start again; what was stored is kept")
    except AccessRefused as error:
        if settings.database_url is None:
            _leave_data_directory(error, settings)
        leave(ExitStatus.DATABASE_REFUSED, f"{error}. Correct LOOPWRIGHT_DATABASE_URL, or what it names")
    except Unavailable as error:
        leave(
            ExitStatus.DATABASE_AWAY,
            f"{error}. It was waited for; start it, or correct LOOPWRIGHT_DATABASE_URL, and start again",
        )
    except OSError as error:
        _leave_if_known(error, settings)
        raise


def _leave_if_known(error: OSError, settings: Settings) -> None:
    if error.errno in _FULL:
        leave(ExitStatus.DISK_FULL, f"the disk is full ({error}). Make room on it and start again")
    path = Path(str(error.filename or os.devnull))
    # What cannot be made may be a folder above it.
    if path.is_relative_to(settings.data_dir) or settings.data_dir.is_relative_to(path):
        _leave_data_directory(error, settings)


def _leave_data_directory(error: Exception, settings: Settings) -> NoReturn:
    leave(
        ExitStatus.DATA_DIRECTORY,
        f"the data directory {settings.data_dir} cannot be used ({error}). Give one that this user may write, "
        "with --data-dir or LOOPWRIGHT_DATA_DIR",
    )
