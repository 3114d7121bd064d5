"""The race of a cell: every program that was the best of a run at some time, timed side by side.

It is the race in which the service certifies programs (`workers.device.race`), in several processes, whose buffers
have other addresses: in each, all programs run in a new random order each round, so that drift of the machine affects
all of them equally, and after some rounds the fastest go on.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.search.runs import name_of
from benchmarks.search.workloads import WORKLOADS
from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from tuner.ports import Fleet, Raced, RaceRequest, nothing_meanwhile
from tuner.workload import make_workload

PROCESSES = 5


def race(fleet: Fleet, workload: str, traces: Iterable[str]) -> dict[str, Any]:
    """Race the programs of traces.

    Returns ``{"seconds": {name: median}, "samples": {name: [[…], …]}}``: seconds a call, and samples by process and
    round. A program whose results are wrong is left out.
    """
    here = make_workload(WORKLOADS[workload](), workload)
    outputs = write_only(module_from_json(here.module_json)["main"])
    programs = {name_of(trace): trace for trace in traces}
    request = RaceRequest(here.module_json, here.args, outputs, programs, yardsticks=False)
    found = [fleet.race(request, nothing_meanwhile).contenders for _ in range(PROCESSES)]
    samples = {
        name: [list(raced.run_secs) for raced in results]
        for name in programs
        if len(results := [raced for one in found if isinstance(raced := one[name], Raced)]) == PROCESSES
    }
    seconds = {name: statistics.median(itertools.chain(*taken)) for name, taken in samples.items()}
    return {"seconds": seconds, "samples": samples}
