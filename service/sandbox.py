"""Runs TVM for the service in a few child processes that are kept warm, never in its own process.

A failure on submitted input is the user's to mend (422). A failure on stored data is a fault of the service (500).
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loopwright.codegen.math_mode import MathMode
from service.ongoing import ongoing
from service.pool import Load, Pool
from service.problems import ProblemError
from service.shares import Shares
from tuner.answers import (
    AppliedModule,
    Assembly,
    DecisionTable,
    RecordFiles,
    RecordLine,
    RecordsRead,
    Scripts,
    Submission,
    TargetMatch,
)
from workers.error_text import for_users
from workers.walls.levels import Policy, choose
from workers.warm_child import ChildCrashed, ChildLost, ChildRaised, ChildTimeout, WarmChild

SECONDS = 30.0
"""Deadline of a call. Not tuned: the largest models in examples/ take about 3 s."""
WAITING = 8
"""Calls that may wait for a child, of the 40 threads that answer requests. Not tuned."""
WAIT_SECONDS = 10.0
"""How long a call waits for a child. Not tuned: most calls take under a second."""
PER_CALLER = 2
"""Calls of one caller that run or wait at a time. Not tuned."""
_MEMORY = 4 * 2**30
"""Bytes of data that a call may allocate. Not tuned."""

PARSE = "service.intake:parse"
MATCH = "workers.detect:match"
DIGESTS = "tuner.lookup:digests"
READ = "db.tvm_json:read"
SCRIPTS = "tuner.rendering:scripts"
APPLY = "tuner.rendering:apply"
ASSEMBLY = "workers.assembly:assembly"
DECISIONS = "tuner.decisions:table"
EXPORT = "db.tvm_json:export"
PRELOAD = sorted({name.partition(":")[0] for name in (PARSE, MATCH, DIGESTS, READ, SCRIPTS, ASSEMBLY, DECISIONS)})

_REFUSALS = {
    "InvalidModule": "invalid-module",
    "InvalidTarget": "invalid-target",
    "InvalidSpace": "invalid-space",
    "UnsupportedVersion": "unsupported-version",
}
"""Exceptions by which our code refuses an input, with a message for the user."""
_OUR_FAULTS = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError", "NotImplementedError"})
"""Exceptions that no input explains."""

log = logging.getLogger("loopwright.sandbox")


@dataclass(frozen=True, slots=True)
class _Submitted:
    """What a user sent, in the words of an answer that refuses it."""

    noun: str
    kind: str
    """Of the problem, if TVM refuses it."""
    smaller: str
    """What to do if it is too large."""
    doing: str = "Reading"


_MODULE = _Submitted("the module", "invalid-module", "submit fewer functions, or smaller ones, at once")
_FUNCTIONS = _Submitted("the functions", "invalid-module", "look up fewer of them at once, or send their digests")
_TARGET = _Submitted("the target", "invalid-target", "choose one of GET /api/v1/targets")
_PROGRAM = _Submitted("the program", "not-compiled", "it can still be tried on a machine of your own", "Compiling")
_ARCHIVE = _Submitted("the records", "invalid-archive", "import them in parts")


class Sandbox:
    """Thread-safe. There are as many calls at a time as children; a few more calls wait for a while.

    A call whose caller leaves (see `service.ongoing`) ends, whether it waits or runs.
    """

    def __init__(self, children: int, walls: Policy) -> None:
        """``walls`` around the children. Raises NoWalls."""
        self.level = choose(walls)
        self._children = [
            WarmChild(PRELOAD, {"TVM_NUM_THREADS": "1"}, _MEMORY, level=self.level) for _ in range(children)
        ]
        self._pool = Pool(self._children, WAITING, WAIT_SECONDS)
        self._shares = Shares("requests that read modules or render programs", each=PER_CALLER)

    def start(self) -> None:
        """Start all children before the first request."""
        for child in self._children:
            child.start()

    def close(self) -> None:
        for child in self._children:
            child.close()

    def load(self) -> Load:
        """Return how busy the children are now."""
        return self._pool.load()

    def parse(
        self,
        *,
        format: str,
        data: str,
        target_json: str,
        shapes: dict[str, int] | list[dict[str, int]] | None,
        space: list[Any] | None,
        exact_math: bool,
        math: MathMode,
        unproven: bool,
    ) -> Submission:
        """Parse a submitted module into tasks. Raises ProblemError."""
        fields = self._submitted(
            PARSE,
            _MODULE,
            fmt=format,
            data=data,
            target_json=target_json,
            shapes=shapes,
            space=space,
            exact_math=exact_math,
            math=math,
            unproven=unproven,
        )
        return Submission.from_json(fields)

    def digests(self, modules: Sequence[str]) -> list[str]:
        """Compute the workload hash of each function, given as TVM's JSON. Raises ProblemError."""
        hashes: list[str] = self._submitted(DIGESTS, _FUNCTIONS, modules=list(modules))
        return hashes

    def match(self, target: str, offers: Sequence[str]) -> TargetMatch:
        """Find the offered target (JSON) that runs code for a user's. Raises ProblemError."""
        return TargetMatch(**self._submitted(MATCH, _TARGET, target=target, offers=list(offers)))

    def read(self, workload_text: str, record_text: str) -> RecordsRead:
        """Read TVM's JSON pair as a user sent it. Raises ProblemError."""
        fields = self._submitted(READ, _ARCHIVE, workload_text=workload_text, record_text=record_text)
        return RecordsRead.from_json(fields)

    def scripts(self, *, module_json: str, trace_json: str | None, target_json: str) -> Scripts:
        """Render a stored program. Raises ProblemError."""
        fields = self._stored(
            SCRIPTS, "Rendering the program", module_json=module_json, trace_json=trace_json, target_json=target_json
        )
        return Scripts(**fields)

    def assembly(self, *, module_json: str, trace_json: str | None, target_json: str) -> Assembly:
        """Compile a stored program, which nobody may have done before: records can be imported. Raises ProblemError."""
        fields = self._submitted(
            ASSEMBLY, _PROGRAM, module_json=module_json, trace_json=trace_json, target_json=target_json
        )
        return Assembly(**fields)

    def decisions(self, *, module_json: str, traces: Sequence[str], latencies: Sequence[float]) -> DecisionTable:
        """Tabulate the decisions of stored traces; ``latencies`` are seconds. Raises ProblemError."""
        fields = self._stored(
            DECISIONS,
            "Tabulating the decisions",
            module_json=module_json,
            traces=list(traces),
            latencies=list(latencies),
        )
        return DecisionTable.from_json(fields)

    def export(self, modules: Mapping[str, str], records: Sequence[RecordLine], first: int) -> RecordFiles:
        """Write stored records as TVM's JSON pair, of which the first workload is number ``first``.

        ``modules`` are JSON by workload hash. Raises ProblemError.
        """
        fields = self._stored(
            EXPORT,
            "Exporting the records",
            workloads=[{"hash": key, "module_json": module_json} for key, module_json in modules.items()],
            records=[asdict(record) for record in records],
            first=first,
        )
        return RecordFiles(**fields)

    def apply(
        self, *, module_json: str, target_json: str, traces: Mapping[str, str | None], shapes: dict[str, int] | None
    ) -> AppliedModule:
        """Apply schedules to a stored module. Raises ProblemError, a refusal if the user's ``shapes`` do not fit."""
        fields = self._stored(
            APPLY,
            "Applying the schedules",
            refusals=("InvalidModule",),
            module_json=module_json,
            target_json=target_json,
            traces=dict(traces),
            shapes=shapes,
        )
        return AppliedModule(**fields)

    def _submitted(self, function: str, submitted: _Submitted, **arguments: Any) -> Any:
        """Call a function on a user's input: what goes wrong is the input's fault, with few exceptions."""
        noun = submitted.noun
        try:
            return self._call(function, arguments)
        except ChildRaised as error:
            if error.kind in _REFUSALS:
                raise ProblemError(422, _REFUSALS[error.kind], str(error)) from error
            if error.kind in _OUR_FAULTS:
                raise _fault(f"{submitted.doing} {noun}", function, f"{error.kind}: {error}") from error
            if error.kind == "MemoryError":
                raise _too_expensive(noun, f"needs over {_MEMORY // 2**30} GiB", submitted) from error
            log.warning("%s: %s: %s", function, error.kind, error)
            detail = f"TVM refused {noun} ({error.kind}): {for_users(str(error))}"
            raise ProblemError(422, submitted.kind, detail) from error
        except ChildTimeout as error:
            raise _too_expensive(noun, f"took over {SECONDS:.0f} s", submitted) from error
        except ChildCrashed as error:
            log.warning("%s: %s: %s", function, error, error.stderr)
            detail = f"TVM crashed on {noun} ({error}); check that TVM accepts it outside of the service."
            raise ProblemError(422, submitted.kind, detail) from error

    def _stored(self, function: str, doing: str, refusals: Sequence[str] = (), **arguments: Any) -> Any:
        """Call a function on stored data: what goes wrong is a fault of the service, except for ``refusals``."""
        try:
            return self._call(function, arguments)
        except ChildRaised as error:
            if error.kind in refusals:
                raise ProblemError(422, _REFUSALS[error.kind], str(error)) from error
            raise _fault(doing, function, f"{error.kind}: {error}") from error
        except ChildTimeout as error:
            log.warning("%s: no answer within %.0f s", function, SECONDS)
            detail = f"{doing} took over {SECONDS:.0f} s and was stopped. Try again when the service is less busy."
            # Not 503, which clients repeat by themselves: the next 30 s would most likely end in the same way.
            raise ProblemError(500, "too-slow", detail) from error
        except ChildCrashed as error:
            raise _fault(doing, function, f"{error}; {error.stderr}") from error

    def _call(self, function: str, arguments: dict[str, Any]) -> Any:
        request = ongoing()
        with contextlib.ExitStack() as held:
            stay = _nobody_leaves
            if request is not None:
                held.enter_context(self._shares.hold(request.caller))
                stay = request.stay
            child = held.enter_context(self._pool.child(stay))
            try:
                return child.call(function, arguments, SECONDS, stay)
            except ChildLost as error:
                log.warning("%s: %s", function, error)
                detail = (
                    "The process that worked on this request was killed. Nothing was stored; send the request again."
                )
                raise ProblemError(503, "interrupted", detail, headers={"Retry-After": "1"}) from error


def _nobody_leaves() -> None:
    """Outside of a request."""


def _too_expensive(noun: str, cost: str, submitted: _Submitted) -> ProblemError:
    return ProblemError(422, "too-expensive", f"{submitted.doing} {noun} {cost} and was stopped; {submitted.smaller}.")


def _fault(doing: str, function: str, reason: str) -> ProblemError:
    """Log the reason, and return an answer without it: it may contain native stacks and paths of this machine."""
    reference = secrets.token_hex(4)
    log.error("fault %s: %s failed: %s", reference, function, reason)
    return ProblemError(
        500,
        "service-fault",
        f"{doing} failed. This is a fault of the service and not of the request; "
        f"the service's log has the reason under {reference}.",
    )
