"""The service's own builders, measurer and search child behind walls of one level."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import TracebackType
from typing import Self
from unittest import mock

from benchmarks.search.race import succeeded
from benchmarks.walls.report import BATCH, PROPOSALS, PROPOSED
from tuner.codec import decode, encode
from tuner.ports import nothing_meanwhile
from tuner.tune import TuneRequest
from tuner.types import Measured, TaskSpec, Workload
from workers import actors
from workers.actors import Builder, Measurer
from workers.messages import (
    BuildAnswer,
    BuildRequest,
    Candidate,
    MeasureAnswer,
    MeasureBatch,
)
from workers.walled_search import WalledSearch, search_child
from workers.walls.levels import Level, Policy
from workers.warm_child import WarmChild

_CALLER = "benchmark"


class Arm:
    """A builder with a place a core, the measurer and the search child; processes are warm before anything is timed."""

    def __init__(self, level: Level, cores: int) -> None:
        self.level = level
        # The classes take the strongest level that the policy allows on this machine; here it is to be this one.
        with mock.patch.object(actors, "choose", return_value=level):
            self._builder = Builder(cuda=False, walls=Policy.PREFER, places=cores)
            self._measurer = Measurer("cpu", cores, Policy.PREFER)
        self._search = search_child(level)
        for child in self._children():
            child.start()
        self._pool = ThreadPoolExecutor(cores)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        for child in self._children():
            child.close()

    def _children(self) -> list[WarmChild]:
        return [*(place.child for place in self._builder._places), self._measurer._child, self._search]

    def trials(self, workload: Workload, traces: Sequence[str], target_json: str) -> tuple[float, list[float]]:
        """Build all, then measure them batch by batch: returns the seconds, and each program's median latency.

        Raises RuntimeError for a program that cannot be built or measured.
        """
        started = time.perf_counter()
        requests = [encode(BuildRequest(workload.module_json, trace, target_json)) for trace in traces]
        answers = self._pool.map(lambda request: self._builder.build(request, _CALLER), requests)
        artifacts = [succeeded(decode(BuildAnswer, answer).result) for answer in answers]
        latencies: list[float] = []
        for first in range(0, len(traces), BATCH):
            batch = [Candidate(str(place), artifact) for place, artifact in enumerate(artifacts[first : first + BATCH])]
            measured = self._measurer.measure(encode(MeasureBatch(workload.args, tuple(batch))), _CALLER)
            latencies += [_median(answer, self.level) for answer in decode(list[MeasureAnswer], measured)]
        return time.perf_counter() - started, latencies

    def searching(self, workload: Workload, target_json: str) -> float:
        """Return the seconds to read a task, open it and propose some rounds of candidates, with made-up latencies."""
        request = TuneRequest([TaskSpec(workload, 1)], target_json, None, 100, None, seed=1)
        started = time.perf_counter()
        with closing(WalledSearch(self._search, request)) as search:
            search.read(0, request.tasks[0], nothing_meanwhile)
            search.open(0, [], nothing_meanwhile)
            for _ in range(PROPOSALS):
                for place, candidate in enumerate(search.propose(0, PROPOSED, nothing_meanwhile)):
                    search.observe(0, candidate, Measured((1e-3 * (1 + place),), "made up"))
        return time.perf_counter() - started


def _median(answer: MeasureAnswer, level: Level) -> float:
    assert answer.sandbox is level
    return Measured(succeeded(answer.result).run_secs, "").median
