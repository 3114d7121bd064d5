"""Everything that the SDK raises of its own; all of it is a `LoopwrightError`."""

from __future__ import annotations

from loopwright.codegen.errors import LoopwrightError, UnsupportedVersion
from loopwright.schemas import Problem

__all__ = ["LoopwrightError", "UnsupportedVersion"]


class CouldNotReach(LoopwrightError):
    """No answer came from the service. Calls that are safe to repeat have been repeated before this is raised."""


class UnexpectedAnswer(LoopwrightError):
    """Something answered that is not a Loopwright service, or one of a version that this SDK cannot read."""


class WaitTimedOut(LoopwrightError, TimeoutError):
    """`Job.wait` met its time limit. The job goes on; wait again, or cancel it."""


class CheckFailed(LoopwrightError):
    """A model could not be compared with its reference, since its job did not succeed."""


class TvmUnavailable(LoopwrightError, ImportError):
    """This call works on programs and needs TVM, which is absent or of a version the service does not speak."""


class UnsupportedModel(LoopwrightError, ValueError):
    """A model of an accepted kind that cannot be turned into a module; the message says what of it, and what to do."""


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
        """What is wrong with the request, and what to do."""
        return self.problem.detail

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        return self.problem.status


class InvalidRequest(ServiceError):
    """What was sent cannot be used (400, 413, 415, 422); the detail says what to change."""


class Unauthorized(ServiceError):
    """The token is missing, wrong or not enough (401, 403). `loopwright login` saves one."""


class NotFound(ServiceError):
    """There is nothing by that name (404, 410)."""


class Conflict(ServiceError):
    """It clashes with the present state, such as cancelling a finished job (409)."""


class TooManyRequests(ServiceError):
    """The service asks for patience (429); waiting as long as it asked for has been tried."""


class ServiceUnavailable(ServiceError):
    """The service or something that it stands on failed (5xx)."""


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
    """The error whose type fits the problem's status."""
    fallback = ServiceUnavailable if problem.status >= 500 else ServiceError
    return _BY_STATUS.get(problem.status, fallback)(problem)


def first_line(error: BaseException) -> str:
    """What an error says, on one line: importers and exporters add pages of their own state."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
