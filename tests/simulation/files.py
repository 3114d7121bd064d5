"""An empty database for each run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from db import Database


@dataclass(frozen=True, slots=True)
class Files:
    """An empty database at the newest revision, and one that each run has in its turn.

    It is opened once: to compile the statements anew for each run would take longer than to run them.
    """

    template: Path
    file: Path
    database: Database

    def emptied(self) -> Database:
        self.database.close()
        for earlier in self.file.parent.glob(f"{self.file.name}*"):
            earlier.unlink()
        shutil.copy(self.template, self.file)
        return self.database
