"""A seeded scheduler: threads of simulated processes, one at a time, under a clock that costs nothing.

Threads are greenlets. Another one continues only where the code under test waits, or calls what is simulated; which one
it is comes from the seed, so that a seed repeats. The module's objects stand for the modules `time` and `threading`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import greenlet

EPOCH = 1_893_456_000.0
"""2030-01-01: the simulated time at which everything begins, in seconds since 1970."""
_MOST_STEPS = 200_000


class Killed(BaseException):
    """The process was killed: what is called from now on does nothing, and no handler of errors sees it."""


class Stuck(Exception):
    """Nobody can go on, or the end has not come in time."""


@dataclass(eq=False)
class Process:
    name: str
    alive: bool = True
    stopped_until: float = 0.0
    """Until then it stands still, as one that swaps does, or whose machine sleeps."""
    slept: float = 0.0
    """Seconds that its machine slept. Its monotonic clock stood still meanwhile."""


@dataclass(eq=False)
class _Thread:
    process: Process
    greenlet: Any
    ready: Callable[[], bool] = field(default=lambda: False)
    wakes: float = 0.0


class Scheduler:
    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.now = 0.0
        """Simulated seconds since the beginning."""
        self.steps = 0
        self.history: list[str] = []
        """What happened, for who looks into a seed."""
        self._threads: list[_Thread] = []
        self._current: _Thread | None = None
        self._hub: Any = None

    def spawn(self, process: Process, function: Callable[[], object]) -> _Thread:
        """Let a process have one more thread."""

        def run() -> None:
            with contextlib.suppress(Killed):
                function()

        thread = _Thread(process, greenlet.greenlet(run), wakes=self.now)
        self._threads.append(thread)
        return thread

    def run(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Let threads go on until ``is_over``. Raises Stuck after so many simulated seconds, and errors of threads."""
        self._hub = greenlet.getcurrent()
        until = self.now + seconds
        while not is_over():
            able = [thread for thread in self._threads if self._is_able(thread)]
            if not able:
                self.now = min((self._wakes(thread) for thread in self._threads), default=float("inf"))
                if self.now > until:
                    raise Stuck(f"after {seconds:g} s, and {self.steps} steps")
                continue
            self._step(self.draw.choice(able))
            if self.steps > _MOST_STEPS:
                raise Stuck(f"after {self.steps} steps")

    def kill(self, process: Process) -> None:
        """End a process as SIGKILL does: nothing that it would do at its end has an effect."""
        process.alive = False
        doomed = [thread for thread in self._threads if thread.process is process]
        self._threads = [thread for thread in self._threads if thread.process is not process]
        current = self._current
        for self._current in doomed:
            if self._current is not current and not self._current.greenlet.dead:
                self._current.greenlet.parent = greenlet.getcurrent()
                self._current.greenlet.throw(Killed)
        self._current = current
        if current in doomed:
            raise Killed

    def pause(self, seconds: float, ready: Callable[[], bool] = lambda: False) -> bool:
        """Let others go on, until ``ready``, but no longer than ``seconds``. Return whether it is ready."""
        thread = self._current
        assert thread is not None
        if not thread.process.alive:
            raise Killed
        thread.ready, thread.wakes = ready, self.now + seconds
        self._hub.switch()
        return ready()

    @property
    def process(self) -> Process:
        assert self._current is not None
        return self._current.process

    def _is_able(self, thread: _Thread) -> bool:
        return thread.process.stopped_until <= self.now and (thread.wakes <= self.now or thread.ready())

    def _wakes(self, thread: _Thread) -> float:
        return max(thread.wakes, thread.process.stopped_until)

    def _step(self, thread: _Thread) -> None:
        self.steps += 1
        self._current = thread
        thread.greenlet.parent = greenlet.getcurrent()
        try:
            thread.greenlet.switch()
        finally:
            self._current = None
        if thread.greenlet.dead and thread in self._threads:
            self._threads.remove(thread)

    def is_running(self, thread: _Thread) -> bool:
        return thread in self._threads


class SimulatedTime:
    """Stands for the module `time`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def monotonic(self) -> float:
        return self._scheduler.now - self._scheduler.process.slept

    def time(self) -> float:
        return EPOCH + self._scheduler.now

    def sleep(self, seconds: float) -> None:
        self._scheduler.pause(seconds)


class SimulatedThreading:
    """Stands for the module `threading`, as far as the code under test uses it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def Event(self) -> Event:
        return Event(self._scheduler)

    def Condition(self) -> Condition:
        return Condition(self._scheduler)

    def Thread(self, target: Callable[..., object], args: tuple[Any, ...] = (), **_: Any) -> Thread:
        return Thread(self._scheduler, target, args)


class Event:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float = float("inf")) -> bool:
        return self._set or self._scheduler.pause(timeout, self.is_set)


class Condition:
    """Its lock is held by whoever runs: threads change only where they wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        pass

    def wait_for(self, predicate: Callable[[], bool], timeout: float = float("inf")) -> bool:
        return predicate() or self._scheduler.pause(timeout, predicate)


class Thread:
    def __init__(self, scheduler: Scheduler, target: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._scheduler = scheduler
        self._run = lambda: target(*args)
        self._thread: _Thread | None = None

    def start(self) -> None:
        self._thread = self._scheduler.spawn(self._scheduler.process, self._run)

    def join(self, timeout: float = float("inf")) -> None:
        self._scheduler.pause(timeout, lambda: self._thread is None or not self._scheduler.is_running(self._thread))


@contextlib.contextmanager
def in_place_of(replaced: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """Set attributes of modules for the time of the block."""
    before = {(module, name): getattr(module, name) for module, name in replaced}
    for (module, name), value in replaced.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)
