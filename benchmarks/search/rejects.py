"""What racing loses: candidates measured in full, and what the race would have made of them.

    .venv/bin/python -m benchmarks.search.rejects

A candidate slower than `SearchConfig.cutoff` times the best so far is sampled once or twice (`workers.measure.sample`).
Here trials of the teachers (`benchmarks.search` makes them) are built again and all their samples are taken; then the
race is replayed on these samples, in the order in which the trials were proposed. Results go to
benchmarks/results/search/rejects.json.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any

import tvm

from benchmarks.search.race import host_target, succeeded
from benchmarks.search.run_record import RUNS
from benchmarks.search.teachers import TEACHERS, histories
from loopwright.codegen import host_lock
from loopwright.codegen.threads import OMP_NUM_THREADS, environment
from tuner.search.config import SearchConfig
from tuner.types import Measured, TensorInfo
from tuner.workload import make_workload
from workers import child_calls
from workers.arguments import draw, to_device
from workers.build import FUNCTION, load
from workers.clock import Clock
from workers.entry import entry
from workers.measure import Calls, sample
from workers.messages import Artifact, BuildRequest
from workers.walls.levels import Level
from workers.warm_child import WarmChild

RESULTS = RUNS.parent / "rejects.json"
CANDIDATES = 200
_SECONDS = 60.0


def main() -> None:
    taught = histories()
    each = -(-CANDIDATES // len(taught))
    target_json = host_target()
    threads = json.loads(target_json)["num-cores"]
    builder = WarmChild([child_calls.BUILD.module], {"TVM_NUM_THREADS": "1"}, level=Level.NONE)
    runner = WarmChild(
        ["benchmarks.search.rejects"], {**environment(threads), OMP_NUM_THREADS: str(threads)}, level=Level.NONE
    )
    records: list[dict[str, Any]] = []
    for name, trials in taught.items():
        workload = make_workload(TEACHERS[name](), name)
        measured = [trial for trial in trials if isinstance(trial.outcome, Measured)]
        # Every few: the race is as hard late in a search, among good programs, as it is early.
        for trial in measured[:: max(1, len(measured) // each)][:each]:
            request = BuildRequest(workload.module_json, trial.candidate.trace_json, target_json)
            artifact = succeeded(child_calls.BUILD.tried(builder, request, seconds=_SECONDS))
            calls = runner.call("benchmarks.search.rejects:calls", (workload.args, artifact), _SECONDS)
            records.append({"workload": name, "calls": calls})
        print(f"{name}: {len(records)} candidates", flush=True)
    builder.close()
    runner.close()
    RESULTS.write_text(json.dumps({"summary": replay(records), "candidates": records}) + "\n")
    print(RESULTS)


@entry
def calls(args: list[TensorInfo], artifact: Artifact) -> Iterator[list[list[float]] | Clock]:
    """In the child: yield ``[number of calls, mean seconds]`` of every sample that is taken without a cutoff."""
    device = tvm.runtime.cpu(0)
    arguments = to_device(draw(args, [False] * len(args), "normal", 0), device)
    module = load(artifact)
    module[FUNCTION]
    taken: list[list[float]] = []

    calls = Calls(module, device, arguments)

    def noted(number: int) -> float:
        seconds = calls.mean(number) if number else calls.cold()
        taken.append([number, seconds])
        return seconds

    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        sample(lambda: noted(0), noted, None)
    yield taken


def replayed(seconds: list[float], cutoff: float | None) -> tuple[list[float], int]:
    """The samples that would have been taken, and how many evaluations that would have been."""
    left = iter(seconds)
    samples = sample(lambda: next(left), lambda _: next(left), cutoff)
    return samples, len(seconds) - len(list(left))


def replay(records: list[dict[str, Any]]) -> dict[str, Any]:
    """How the race would have gone, in numbers.

    ``rejected``: not sampled in full. ``false``: of these, those whose full median lies within the cutoff.
    ``lost``: those whose full median was better than the best so far. ``seconds`` is what the calls took,
    ``full_seconds`` what they take without the race.
    """
    factor = SearchConfig().cutoff
    best: dict[str, float] = {}
    counts = {"candidates": len(records), "rejected": 0, "false": 0, "lost": 0}
    spent = full = 0.0
    for record in records:
        # A mean takes one call that is not counted.
        cost = [(number + 1) * seconds for number, seconds in record["calls"]]
        full += sum(cost)
        seconds = [seconds for _, seconds in record["calls"]]
        samples, _ = replayed(seconds, None)
        median = statistics.median(samples)
        incumbent = best.get(record["workload"])
        cutoff = None if incumbent is None or factor is None else factor * incumbent
        taken, called = replayed(seconds, cutoff)
        rejected = cutoff is not None and len(taken) < len(samples)
        spent += sum(cost[:called])
        if rejected:
            assert cutoff is not None
            counts["rejected"] += 1
            counts["false"] += median <= cutoff
            counts["lost"] += incumbent is not None and median < incumbent
        else:
            best[record["workload"]] = min(median, incumbent or median)
    return {**counts, "seconds": spent, "full_seconds": full}


if __name__ == "__main__":
    main()
