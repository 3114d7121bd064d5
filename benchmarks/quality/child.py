"""The process of one engine for one case: `loopwright.comparing.child` with a case of the benchmark.

PYTHON -m benchmarks.quality.child SPECIFICATION

In the specification, ``given`` holds the fields of `Shared`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.quality.shared import Shared
from loopwright.comparing.child import serve


def main() -> None:
    specification = json.loads(sys.argv[1])
    fields = specification["given"]
    serve(specification, Shared(**fields | {"folder": Path(fields["folder"])}))


if __name__ == "__main__":
    main()
