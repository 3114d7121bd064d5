"""Builds in a warm child: candidates of one function, one after another, in one fork.

A fork of a process with TVM, and the pages that it touches for the first time, take 30 of the 210 ms of processor time
of a small function's build. What a submission builds may still only spoil other candidates of the same function for the
same caller: the programs that these are compared with have forks of their own.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack

from loopwright.codegen.kinds import Stage
from tuner.types import Failure
from workers.child.child_calls import BUILD, BUILD_EACH, failure_of
from workers.child.idle import RESTS
from workers.child.warm_child import ChildError, Ending, Session, WarmChild
from workers.messages import Artifact, BuildRequest

MOST = 8
"""Programs that one fork builds. With 4, it takes 5 % more processor time, and with 1, 14 to 17 %."""
_OF_THE_FORK = (Ending.CRASHED, Ending.KILLED, Ending.OUT_OF_MEMORY, Ending.MALFORMED)
"""Endings to which the programs before may have led."""


class BuildFork:
    """The fork of a warm child that builds. Thread-safe: one request at a time."""

    def __init__(self, child: WarmChild) -> None:
        self._child = child
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._session: Session | None = None
        self._key: tuple[str, ...] = ()
        self._built = 0
        """Programs by the session."""
        self._used = time.monotonic()
        RESTS.look_after(self)

    def build(self, request: BuildRequest, caller: str, seconds: float) -> Artifact | Failure:
        """Return the artifact of a request, or the failure it ended with; ``seconds`` is the deadline."""
        with self._lock:
            if not _shares(request):
                self._close()
                return BUILD.tried(self._child, request, seconds=seconds)
            key = (caller, request.module_json, request.target_json)
            if key != self._key or self._built == MOST:
                self._close()
            is_first = self._built == 0
            try:
                return self._ask(key, request, seconds)
            except ChildError as error:
                self._close()
                if is_first or error.ending not in _OF_THE_FORK:
                    return failure_of(error, Stage.BUILD)
            return BUILD.tried(self._child, request, seconds=seconds)

    def _ask(self, key: tuple[str, ...], request: BuildRequest, seconds: float) -> Artifact:
        """Raises ChildError."""
        if self._session is None:
            self._session = self._opened.enter_context(self._child.session(BUILD_EACH.name, {}))
            self._key = key
        self._built += 1
        try:
            return BUILD_EACH.read(self._session.ask(request, seconds))
        finally:
            self._used = time.monotonic()

    def rest(self, seconds: float, unused_seconds: float) -> None:
        """End the fork if it has not been used for the shorter time; the child itself may rest then."""
        if time.monotonic() - self._used < unused_seconds or not self._lock.acquire(blocking=False):
            return
        try:
            self._close()
        finally:
            self._lock.release()

    def _close(self) -> None:
        self._session, self._key, self._built = None, (), 0
        self._opened.close()


def _shares(request: BuildRequest) -> bool:
    """Return whether a request's fork may build others: not for a baseline or a reference, nor where it uses a GPU."""
    is_candidate = request.trace_json is not None and not request.exact_math
    return is_candidate and json.loads(request.target_json)["kind"] == "llvm"
