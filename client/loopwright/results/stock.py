"""Exported records for stock MetaSchedule, which does not know the intrinsics of Loopwright's rules. Needs TVM."""

from __future__ import annotations

import json
import os
from pathlib import Path

from loopwright.results.archive import MEMBERS


def register_intrinsics(directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Register the tensor intrinsics of Loopwright's own that exported records name, in this process.

    ``JSONDatabase(work_dir=directory)`` replays each record while it reads it, and fails at the first one with an
    intrinsic that is not registered.

    Args:
        directory: what `Client.export_records` wrote.

    Returns:
        The names of the intrinsics, in order.

    Raises:
        FileNotFoundError: the directory has no ``database_tuning_record.json``.
        TvmUnavailable: TVM is not installed.
    """
    from loopwright.extras import require_tvm

    require_tvm()
    from loopwright.codegen.program.intrinsics import register_named

    lines = (Path(directory) / MEMBERS[1]).read_text(encoding="utf-8").splitlines()
    traces = [json.loads(line)[1][0] for line in lines]
    names = {attributes[0] for trace in traces for kind, _, attributes, _ in trace[0] if kind == "Tensorize"}
    return tuple(sorted(filter(register_named, names)))
