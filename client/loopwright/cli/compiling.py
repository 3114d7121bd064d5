"""The process that compiles a model for a cache (`loopwright.caching.child`)."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from loopwright import errors
from loopwright.caching.child import Work, read
from loopwright.caching.entry import Entry
from loopwright.client import Client


class _Compiling(Client):
    def run(self, work: Work) -> None:
        target = json.loads(work.target) if work.target.startswith("{") else work.target
        entry = Entry(work.entry.parent, work.entry.name)
        self._write_entry(work.source, target, work.params, work.verify, work.lock, work.tune, entry)


def main() -> None:
    """Compile what a folder says, and write an error to standard output, or an empty value."""
    logging.getLogger("loopwright").addHandler(logging.NullHandler())  # the parent tells the report
    answer: dict[str, Any] = {}
    try:
        _Compiling().run(read(Path(sys.argv[1])))
    except Exception as error:
        problem = error.problem.model_dump(mode="json") if isinstance(error, errors.ServiceError) else None
        answer = {"kind": type(error).__name__, "message": str(error), "problem": problem}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
