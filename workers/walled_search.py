"""The tuner's `Search` in a warm child: with limits on time and memory, and walls around it."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from tuner.errors import SearchFailed
from tuner.ports import Meanwhile
from tuner.tune import TuneRequest
from tuner.types import MeasureCandidate, Outcome, TaskSpec, Trial
from workers.error_text import first_line, for_users
from workers.messages import Json
from workers.search_messages import (
    read_candidates,
    read_fits,
    read_outputs,
    request_to_json,
    samples_to_json,
    spec_to_json,
    trial_to_json,
)
from workers.walls.levels import Level
from workers.warm_child import ChildCrashed, ChildError, ChildLost, ChildRaised, ChildTimeout, Session, WarmChild

SEARCH = "workers.search"
SECONDS = 60.0
"""Deadline of an answer, while no timing is taken on the host. Not tuned: a batch takes about a second."""
MEMORY_BYTES = 4 * 2**30
"""Limit on the data segment of a job's search. Not tuned."""
_TRAIN_SECONDS = 600.0
"""Not tuned: thousands of samples take some seconds."""
_ATTEMPTS = 3
"""Processes that may be lost with a question before its task counts as at fault. Not tuned."""
_SMALLER = "split the function into several, or submit a smaller one"
_ONE_THREAD = {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The other cores of the host belong to builders."""

T = TypeVar("T")

log = logging.getLogger("loopwright.search")


def search_child(level: Level) -> WarmChild:
    """Return a child for searches, one at a time, and for `train_base`."""
    return WarmChild([SEARCH], _ONE_THREAD, MEMORY_BYTES, busy=True, level=level)


def train_base(child: WarmChild, samples: Sequence[tuple[str, bytes, float | None]]) -> bytes:
    """Train a base model on samples: group, features as stored, latency in seconds. Raises ChildError."""
    return bytes.fromhex(child.call(f"{SEARCH}:train", {"samples": samples_to_json(samples)}, _TRAIN_SECONDS))


class WalledSearch:
    """See `tuner.ports.Search`. Close it at the end, so that the child can serve the next.

    A task whose request ends the child's process has failed. A new process resumes the other tasks from their trials.
    """

    def __init__(self, child: WarmChild, request: TuneRequest, seconds: float = SECONDS) -> None:
        self._child = child
        self._request = request
        self._seconds = seconds
        self._session: Session | None = None
        self._open_session = ExitStack()
        self._specs: dict[int, TaskSpec] = {}
        """Of each task that was read."""
        self._trials: dict[int, dict[str, Trial]] = {}
        """Of each opened task, by candidate: what a new process is told."""
        self._unsent: list[tuple[int, Trial]] = []
        self._failed: dict[int, str] = {}

    def close(self) -> None:
        self._session = None
        self._open_session.close()

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        arguments = len(spec.workload.args)
        outputs = self._asked(
            task, lambda: _reading(task, spec), lambda answer: read_outputs(answer, arguments), meanwhile
        )
        self._specs[task] = spec
        return outputs

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        trials = {trial.candidate.hash: trial for trial in history}
        fits = self._asked(task, lambda: _opening(task, trials), read_fits, meanwhile)
        if fits:
            self._trials[task] = trials
        return fits

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        def question() -> Json:
            return {
                "method": "propose",
                "task": task,
                "count": count,
                "observed": [[number, trial_to_json(trial)] for number, trial in self._unsent],
            }

        candidates = self._asked(task, question, lambda answer: read_candidates(answer, count), meanwhile)
        self._unsent.clear()
        for candidate in candidates:
            self._trials[task][candidate.hash] = Trial("", candidate, None)
        return candidates

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        trial = self._trials[task][candidate.hash] = Trial("", candidate, outcome)
        self._unsent.append((task, trial))

    def _asked(self, task: int, question: Callable[[], Json], read: Callable[[Any], T], meanwhile: Meanwhile) -> T:
        """Return the answer to a question about a task. Raises SearchFailed."""
        losses = 0
        while True:
            if task in self._failed:
                raise SearchFailed(self._failed[task])
            try:
                session = self._session or self._start(meanwhile)
                return read(session.ask(question(), self._seconds, meanwhile))
            except (ChildError, ValueError) as error:
                self.close()
                losses += _is_lost(error)
                if not _is_lost(error) or losses == _ATTEMPTS:
                    self._fail(task, error)
            except BaseException:
                self.close()
                raise

    def _start(self, meanwhile: Meanwhile) -> Session:
        """Start a process, and tell it what the one before knew. A task that ends this one, too, has failed."""
        while True:
            arguments = {"request": request_to_json(self._request)}
            session = self._open_session.enter_context(self._child.session(f"{SEARCH}:serve", arguments))
            self._unsent.clear()
            for task in self._specs.keys() - self._failed.keys():
                try:
                    session.ask(_reading(task, self._specs[task]), self._seconds, meanwhile)
                    if task in self._trials:
                        session.ask(_opening(task, self._trials[task]), self._seconds, meanwhile)
                except ChildError as error:
                    if _is_lost(error):
                        raise
                    self.close()
                    self._fail(task, error)
                    break
            else:
                self._session = session
                return session

    def _fail(self, task: int, error: Exception) -> None:
        self._failed[task] = self._complaint(error)
        log.warning("task %d: %s", task, error)

    def _complaint(self, error: Exception) -> str:
        if isinstance(error, ChildTimeout):
            return f"the search took over {self._seconds:g} s for one step and was stopped; {_SMALLER}"
        if isinstance(error, ChildRaised) and error.kind == "MemoryError":
            return f"the search needs over {MEMORY_BYTES / 2**30:g} GiB; {_SMALLER}"
        if isinstance(error, ChildRaised):
            return f"TVM failed in the search ({error.kind}): {for_users(str(error))}"
        if _is_lost(error):
            return f"the search's process was killed {_ATTEMPTS} times"
        if isinstance(error, ChildCrashed):
            return f"the search's process {error} {first_line(error.stderr)}".strip()
        return "the search's process gave an impossible answer"


def _is_lost(error: Exception) -> bool:
    """Return whether the process was killed from outside, which says nothing about the task."""
    return isinstance(error, ChildLost) or (isinstance(error, ChildCrashed) and error.signal == signal.SIGKILL)


def _reading(task: int, spec: TaskSpec) -> Json:
    return {"method": "read", "task": task, "spec": spec_to_json(spec)}


def _opening(task: int, trials: Mapping[str, Trial]) -> Json:
    return {"method": "open", "task": task, "history": [trial_to_json(trial) for trial in trials.values()]}
