"""The process that compiles a model for a cache (`loopwright.caching.child`)."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from loopwright import errors
from loopwright.caching import cache, child
from loopwright.caching.entry import Entry
from loopwright.service_bests import ServiceBests
from loopwright.session import config
from loopwright.session.transport import Transport


def main() -> None:
    """Compile what a folder says, and write an error to standard output, or an empty value."""
    logging.getLogger("loopwright").addHandler(logging.NullHandler())  # the parent tells the report
    answer: dict[str, Any] = {}
    try:
        work = child.read(Path(sys.argv[1]))
        entry = Entry(work.entry.parent, work.entry.name)
        cache.write(work.source, work.options, entry, ServiceBests(Transport(config.resolve())))
    except Exception as error:
        problem = error.problem.model_dump(mode="json") if isinstance(error, errors.ServiceError) else None
        answer = {"kind": type(error).__name__, "message": str(error), "problem": problem}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
