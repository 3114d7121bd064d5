"""Runs TVM for the service in a few child processes that are kept warm, never in its own process.

A failure on submitted input is the user's to mend (422). A failure on stored data is a fault of the service (500).
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from loopwright.codegen.math_mode import MathMode
from service.api.pool import Load, Pool
from service.api.shares import Shares
from service.ongoing import ongoing
from service.problems import ProblemError
from tuner.inspection.answers import (
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
from workers.child.child_calls import Call
from workers.child.warm_child import ChildError, Ending, WarmChild
from workers.error_text import for_users
from workers.walls.levels import Policy, choose

SECONDS = 30.0
"""Deadline of a call. Not tuned: the largest models in examples/ take about 3 s."""
WAITING = 8
"""Calls that may wait for a child, of the 40 threads that answer requests. Not tuned."""
WAIT_SECONDS = 10.0
"""How long a call waits for a child. Not tuned: most calls take under a second."""
PER_CALLER = 2
"""Calls of one caller that run or wait at a time. Not tuned."""
FUNCTIONS_A_CALL = 50
"""Functions of a lookup that one call reads: about 1 s. Not tuned."""
_MEMORY = 4 * 2**30
"""Bytes of data that a call may allocate. Not tuned."""

PARSE = Call[Submission]("service.intake", "parse", Submission)
MATCH = Call[TargetMatch]("workers.device.detect", "match", TargetMatch)
DIGESTS = Call[list[str]]("tuner.inspection.lookup", "digests", list[str])
READ = Call[RecordsRead]("db.exchange.tvm_json", "read", RecordsRead)
SCRIPTS = Call[Scripts]("tuner.inspection.rendering", "scripts", Scripts)
APPLY = Call[AppliedModule]("tuner.inspection.rendering", "apply", AppliedModule)
ASSEMBLY = Call[Assembly]("workers.device.assembly", "assembly", Assembly)
DECISIONS = Call[DecisionTable]("tuner.inspection.decisions", "table", DecisionTable)
EXPORT = Call[RecordFiles]("db.exchange.tvm_json", "export", RecordFiles)
PRELOAD = sorted({call.module for call in (PARSE, MATCH, DIGESTS, READ, SCRIPTS, ASSEMBLY, DECISIONS)})

_REFUSALS = {
    "InvalidModule": "invalid-module",
    "InvalidTarget": "invalid-target",
    "InvalidSpace": "invalid-space",
    "UnsupportedVersion": "unsupported-version",
}
"""Exceptions by which our code refuses an input, with a message for the user."""
_OUR_FAULTS = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError", "NotImplementedError"})
"""Exceptions that no input explains."""

T = TypeVar("T")

log = logging.getLogger("loopwright.sandbox")


@dataclass(frozen=True, slots=True)
class _Submitted:
    """A user's submission, in the words of an answer that refuses it."""

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
        self._starting: threading.Thread | None = None

    def start(self) -> None:
        """Begin to start the child that calls take first, which imports TVM and then has 150 MB.

        A call that comes before it is ready waits for it. Another child starts with the first call that needs it.
        """
        self._starting = threading.Thread(target=_start, args=(self._children[-1],), daemon=True)
        self._starting.start()

    def close(self) -> None:
        if self._starting is not None:
            self._starting.join()
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
        return self._submitted(
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

    def digests(self, modules: Sequence[str]) -> list[str]:
        """Compute the workload hash of each function, given as TVM's JSON. Raises ProblemError.

        After some functions, other calls that wait take their turn.
        """
        parts = (modules[first : first + FUNCTIONS_A_CALL] for first in range(0, len(modules), FUNCTIONS_A_CALL))
        return [digest for part in parts for digest in self._submitted(DIGESTS, _FUNCTIONS, modules=part)]

    def match(self, target: str, offers: Sequence[str]) -> TargetMatch:
        """Find the offered target (JSON) that runs code for a user's. Raises ProblemError."""
        return self._submitted(MATCH, _TARGET, target=target, offers=offers)

    def read(self, workload_text: str, record_text: str) -> RecordsRead:
        """Read TVM's JSON pair as a user sent it. Raises ProblemError."""
        return self._submitted(READ, _ARCHIVE, workload_text=workload_text, record_text=record_text)

    def scripts(self, *, module_json: str, trace_json: str | None, target_json: str) -> Scripts:
        """Render a stored program. Raises ProblemError."""
        return self._stored(
            SCRIPTS, "Rendering the program", module_json=module_json, trace_json=trace_json, target_json=target_json
        )

    def assembly(self, *, module_json: str, trace_json: str | None, target_json: str) -> Assembly:
        """Compile a stored program, which nobody may have done before: records can be imported. Raises ProblemError."""
        return self._submitted(
            ASSEMBLY, _PROGRAM, module_json=module_json, trace_json=trace_json, target_json=target_json
        )

    def decisions(
        self, *, module_json: str, traces: Sequence[str], target_json: str, latencies: Sequence[float]
    ) -> DecisionTable:
        """Tabulate the decisions of stored traces; ``latencies`` are seconds. Raises ProblemError."""
        return self._stored(
            DECISIONS,
            "Tabulating the decisions",
            module_json=module_json,
            traces=traces,
            target_json=target_json,
            latencies=latencies,
        )

    def export(self, modules: Mapping[str, str], records: Sequence[RecordLine], first: int) -> RecordFiles:
        """Write stored records as TVM's JSON pair, of which the first workload is number ``first``.

        ``modules`` are JSON by workload hash. Raises ProblemError.
        """
        return self._stored(
            EXPORT,
            "Exporting the records",
            workloads=[{"hash": key, "module_json": module_json} for key, module_json in modules.items()],
            records=records,
            first=first,
        )

    def apply(
        self, *, module_json: str, target_json: str, traces: Mapping[str, str | None], shapes: dict[str, int] | None
    ) -> AppliedModule:
        """Apply schedules to a stored module. Raises ProblemError, a refusal if the user's ``shapes`` do not fit."""
        return self._stored(
            APPLY,
            "Applying the schedules",
            refusals=("InvalidModule",),
            module_json=module_json,
            target_json=target_json,
            traces=traces,
            shapes=shapes,
        )

    def _submitted(self, call: Call[T], submitted: _Submitted, **arguments: Any) -> T:
        """Call a function on a user's input: what goes wrong is the input's fault, with few exceptions."""
        noun = submitted.noun
        try:
            return self._call(call, arguments)
        except ChildError as error:
            detail = f"TVM crashed on {noun} ({error}); check that TVM accepts it outside of the service."
            match error.ending:
                case Ending.RAISED:
                    if (kind := error.raised or "") in _REFUSALS:
                        raise ProblemError(422, _REFUSALS[kind], str(error)) from error
                    if kind in _OUR_FAULTS:
                        raise _fault(f"{submitted.doing} {noun}", call.function, error.details) from error
                    detail = f"TVM refused {noun} ({kind}): {for_users(str(error))}"
                case Ending.OUT_OF_MEMORY:
                    raise _too_expensive(noun, f"needs over {_MEMORY // 2**30} GiB", submitted) from error
                case Ending.TIMEOUT:
                    raise _too_expensive(noun, f"took over {SECONDS:.0f} s", submitted) from error
            log.warning("%s: %s", call.function, error.details)
            raise ProblemError(422, submitted.kind, detail) from error

    def _stored(self, call: Call[T], doing: str, refusals: Sequence[str] = (), **arguments: Any) -> T:
        """Call a function on stored data: what goes wrong is a fault of the service, except for ``refusals``."""
        try:
            return self._call(call, arguments)
        except ChildError as error:
            if (kind := error.raised or "") in refusals:
                raise ProblemError(422, _REFUSALS[kind], str(error)) from error
            if error.ending is not Ending.TIMEOUT:
                raise _fault(doing, call.function, error.details) from error
            log.warning("%s: no answer within %.0f s", call.function, SECONDS)
            detail = f"{doing} took over {SECONDS:.0f} s and was stopped. Try again when the service is less busy."
            # Not 503, which clients repeat by themselves: the next 30 s would most likely end in the same way.
            raise ProblemError(500, "too-slow", detail) from error

    def _call(self, call: Call[T], arguments: dict[str, Any]) -> T:
        request = ongoing()
        with contextlib.ExitStack() as held:
            caller, stay = None, _nobody_leaves
            if request is not None:
                caller, stay = request.caller, request.stay
                held.enter_context(self._shares.hold(caller))
            child = held.enter_context(self._pool.child(caller, stay))
            try:
                return call.raw(child, arguments, SECONDS, stay)
            except ChildError as error:
                if error.ending is not Ending.LOST:
                    raise
                log.warning("%s: %s", call.function, error)
                detail = (
                    "The process that worked on this request was killed. Nothing was stored; send the request again."
                )
                raise ProblemError(503, "interrupted", detail, headers={"Retry-After": "1"}) from error


def _start(child: WarmChild) -> None:
    try:
        child.start()
    except ChildError as error:  # the next call tries again
        log.warning("a child that reads modules did not start: %s", error)


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
