"""Why ``scripts/serve`` ends."""

from __future__ import annotations

from service.process.exit_status import ExitStatus


class ServeError(Exception):
    """The service cannot start or continue; the message says what to do."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status
