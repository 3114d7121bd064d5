"""The exceptions of the SDK. All of them are subclasses of `LoopwrightError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.codegen.errors import LoopwrightError, UnsupportedVersion

if TYPE_CHECKING:
    from loopwright.schemas import Problem

__all__ = ["LoopwrightError", "UnsupportedVersion"]


class CouldNotReach(LoopwrightError):
    """The service did not answer, after calls that are safe to repeat were repeated; or a place of packs refused."""


class UnexpectedAnswer(LoopwrightError):
    """The answer is not from a Loopwright service, or from a version that this SDK cannot read."""


class WaitTimedOut(LoopwrightError, TimeoutError):
    """`Job.wait` reached its time limit. The job continues: wait again, or cancel the job."""


class CheckFailed(LoopwrightError):
    """A model could not be compared with its reference, because its job did not succeed."""


class LocalServiceFailed(LoopwrightError):
    """The service of this machine did not start or stop, or is not installed; the message says what to do."""


class TvmUnavailable(LoopwrightError, ImportError):
    """The call needs TVM, which is missing or has another version than the service's."""


class UnsupportedModel(LoopwrightError, ValueError):
    """The model is of an accepted kind, but cannot be converted; the message names the part, and says what to do."""


class WrongAnswer(LoopwrightError):
    """A compiled program does not compute what the model computes. Please report it; ``verify=False`` compiles it."""


class WrongCertificate(LoopwrightError):
    """A best has no certificate that the service signed, or not for this schedule; nothing was compiled with it."""


class InvalidPack(LoopwrightError, ValueError):
    """A file is no pack, or one that nobody should install: it was changed, cut off, or signed with a wrong key."""


class NotLocked(LoopwrightError):
    """A lock file has no best of a function that is to be compiled with it; nothing was compiled."""


class ServiceError(LoopwrightError):
    """The service answered with a problem (RFC 9457): ``title``, ``detail`` and the HTTP ``status``."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title} ({problem.status}): {problem.detail}")
        self.problem: Problem = problem
        """The answer. Its ``type`` names the kind for programs."""

    @property
    def title(self) -> str:
        """The kind of problem in words."""
        return self.problem.title

    @property
    def detail(self) -> str:
        """What was wrong with the request, and what to do."""
        return self.problem.detail

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        return self.problem.status


class InvalidRequest(ServiceError):
    """The request is not valid (400, 413, 415, 422); the detail says what to change."""


class Unauthorized(ServiceError):
    """The token is missing or wrong, or lacks a right (401, 403). `loopwright login` saves a token."""


class NotFound(ServiceError):
    """There is no object with this id or name (404, 410)."""


class Conflict(ServiceError):
    """The request conflicts with the present state, such as creating a user who exists already (409)."""


class TooManyRequests(ServiceError):
    """Too many requests, or a limit of the user was reached (429). Waiting for `Retry-After` was tried."""


class ServiceUnavailable(ServiceError):
    """The service, or a part that it needs, failed (5xx)."""


_BY_STATUS: dict[int, type[ServiceError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: TooManyRequests,
}


def from_problem(problem: Problem) -> ServiceError:
    """Return the error whose type belongs to the problem's status."""
    fallback = ServiceUnavailable if problem.status >= 500 else ServiceError
    return _BY_STATUS.get(problem.status, fallback)(problem)


def first_line(error: BaseException) -> str:
    """Return an error's first line: importers and exporters add pages of their own state."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
