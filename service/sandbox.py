"""Where the service runs TVM on what users sent: a few kept-warm children, never its own process."""

from __future__ import annotations

import queue
from typing import Any

from service.problems import ProblemError
from workers.warm_child import ChildCrashed, ChildRaised, ChildTimeout, WarmChild

SECONDS = 30.0
_MEMORY = 4 * 2**30
_PRELOAD = ["service.intake", "tuner.rendering", "workers.detect", "db.tvm_json"]
_USER_ERRORS = {
    "InvalidModule": "invalid-module",
    "InvalidTarget": "invalid-target",
    "InvalidSpace": "invalid-space",
    "UnsupportedVersion": "unsupported-version",
}


class Sandbox:
    """Thread-safe: as many calls at a time as there are children; the others wait."""

    def __init__(self, children: int) -> None:
        self._idle: queue.SimpleQueue[WarmChild] = queue.SimpleQueue()
        self._children = [WarmChild(_PRELOAD, {"TVM_NUM_THREADS": "1"}, _MEMORY) for _ in range(children)]
        for child in self._children:
            self._idle.put(child)

    def start(self) -> None:
        """Have every child ready before the first request."""
        for child in self._children:
            child.start()

    def close(self) -> None:
        for child in self._children:
            child.close()

    def call(self, function: str, **arguments: Any) -> Any:
        """The value that ``module:function`` yields. Raises ProblemError where the user's input is at fault."""
        child = self._idle.get()
        try:
            return child.call(function, arguments, SECONDS)
        except ChildRaised as error:
            if error.kind in _USER_ERRORS:
                raise ProblemError(422, _USER_ERRORS[error.kind], str(error)) from error
            raise ProblemError(
                422, "invalid-module", f"TVM refused the input ({error.kind}): {str(error)[-500:]}"
            ) from error
        except ChildTimeout as error:
            raise ProblemError(
                422,
                "too-expensive",
                f"Taking the input apart took over {SECONDS:.0f} s and was stopped; submit less at once.",
            ) from error
        except ChildCrashed as error:
            raise ProblemError(
                422,
                "invalid-module",
                f"TVM crashed on this input ({error}); check that the module compiles on its own.",
            ) from error
        finally:
            self._idle.put(child)
