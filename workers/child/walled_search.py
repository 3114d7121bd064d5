"""The tuner's `Search` in a warm child: with limits on time and memory, and walls around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from tuner.codec import Base64
from tuner.errors import SearchFailed
from tuner.inspection.answers import Variants
from tuner.ports import Meanwhile
from tuner.search.request import TuneRequest
from tuner.types import MeasureCandidate, Outcome, TaskSpec, Trial
from workers.child.child_calls import Call, malformed
from workers.child.search_messages import Open, Propose, Question, Read, StoredSample
from workers.child.warm_child import ChildError, Ending, Session, WarmChild
from workers.walls.levels import Level

SEARCH = "workers.child.search"
TRAIN = Call[bytes, Sequence[StoredSample]](SEARCH, "train", Base64)
CHOOSE = Call[MeasureCandidate | None, TuneRequest](SEARCH, "choose", MeasureCandidate | None)
VARIANTS = Call[Variants, str, str, str, int]("tuner.inspection.variants", "variants", Variants)
_READ = Call[tuple[bool, ...]](SEARCH, "serve", tuple[bool, ...])
_OPEN = Call[bool](SEARCH, "serve", bool)
_PROPOSE = Call[list[MeasureCandidate]](SEARCH, "serve", list[MeasureCandidate])
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

_LOST = (Ending.KILLED, Ending.LOST)
"""The process was killed from outside, which says nothing about the task."""

T = TypeVar("T")

log = logging.getLogger("loopwright.search")


def search_child(level: Level) -> WarmChild:
    """Return a child for searches, one at a time, and for `train_base`."""
    return WarmChild([SEARCH, VARIANTS.module], _ONE_THREAD, MEMORY_BYTES, busy=True, level=level)


def train_base(child: WarmChild, samples: Sequence[StoredSample]) -> bytes:
    """Train a base model. Raises ChildError."""
    return TRAIN.raw(child, (samples,), _TRAIN_SECONDS)


def variants(child: WarmChild, module_json: str, target_json: str, trace_json: str, most: int) -> Variants:
    """Return up to ``most`` neighbours of a program (`tuner.inspection.variants`). Raises ChildError."""
    return VARIANTS.raw(child, (module_json, target_json, trace_json, most), SECONDS)


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
        outputs = self._asked(task, lambda: Read(task, spec), _READ, lambda each: len(each) == arguments, meanwhile)
        self._specs[task] = spec
        return outputs

    def choose(self, task: int, meanwhile: Meanwhile) -> MeasureCandidate | None:
        # In a process of its own: one that knows all tasks may have ended with the search's time.
        self.close()
        request = replace(self._request, tasks=[self._specs[task]], base_model=None)
        try:
            return CHOOSE.raw(self._child, (request,), self._seconds, meanwhile)
        except ChildError as error:
            raise SearchFailed(self._complaint(error)) from error

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        trials = {trial.candidate.hash: trial for trial in history}
        fits = self._asked(task, lambda: Open(task, tuple(trials.values())), _OPEN, lambda _: True, meanwhile)
        if fits:
            self._trials[task] = trials
        return fits

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        def question() -> Question:
            return Propose(task, count, tuple(self._unsent))

        candidates = self._asked(task, question, _PROPOSE, lambda found: len(found) <= count, meanwhile)
        self._unsent.clear()
        for candidate in candidates:
            self._trials[task][candidate.hash] = Trial("", candidate, None)
        return candidates

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        trial = self._trials[task][candidate.hash] = Trial("", candidate, outcome)
        self._unsent.append((task, trial))

    def _asked(
        self,
        task: int,
        question: Callable[[], Question],
        call: Call[T],
        fits: Callable[[T], bool],
        meanwhile: Meanwhile,
    ) -> T:
        """Return the answer to a question about a task. Raises SearchFailed."""
        losses = 0
        while True:
            if task in self._failed:
                raise SearchFailed(self._failed[task])
            try:
                session = self._session or self._start(meanwhile)
                answer = call.read(session.ask(question(), self._seconds, meanwhile))
                if not fits(answer):
                    raise malformed()
                return answer
            except ChildError as error:
                self.close()
                losses += error.ending in _LOST
                if error.ending not in _LOST or losses == _ATTEMPTS:
                    self._fail(task, error)
            except BaseException:
                self.close()
                raise

    def _start(self, meanwhile: Meanwhile) -> Session:
        """Start a process, and tell it what the one before knew. A task that ends this one, too, has failed."""
        while True:
            # The tasks are sent one by one.
            request = replace(self._request, tasks=())
            session = self._open_session.enter_context(self._child.session(f"{SEARCH}:serve", {"request": request}))
            self._unsent.clear()
            for task in self._specs.keys() - self._failed.keys():
                try:
                    session.ask(Read(task, self._specs[task]), self._seconds, meanwhile)
                    if task in self._trials:
                        history = tuple(self._trials[task].values())
                        session.ask(Open(task, history), self._seconds, meanwhile)
                except ChildError as error:
                    if error.ending in _LOST:
                        raise
                    self.close()
                    self._fail(task, error)
                    break
            else:
                self._session = session
                return session

    def _fail(self, task: int, error: ChildError) -> None:
        self._failed[task] = self._complaint(error)
        log.warning("task %d: %s", task, error.details)

    def _complaint(self, error: ChildError) -> str:
        match error.ending:
            case Ending.TIMEOUT:
                return f"the search took over {self._seconds:g} s for one step and was stopped; {_SMALLER}"
            case Ending.OUT_OF_MEMORY:
                return f"the search needs over {MEMORY_BYTES / 2**30:g} GiB; {_SMALLER}"
            case Ending.RAISED:
                return f"TVM failed in the search ({error.for_users})"
            case Ending.KILLED | Ending.LOST:
                return f"the search's process was killed {_ATTEMPTS} times"
            case Ending.CRASHED:
                return f"the search's process {error.for_users}"
        return "the search's process gave an impossible answer"
