"""The client of a Loopwright service in Python."""

from __future__ import annotations

from types import TracebackType

from loopwright.calls.comparisons import ComparisonCalls
from loopwright.calls.fleet import FleetCalls
from loopwright.calls.jobs import JobCalls
from loopwright.calls.packages import PackageCalls
from loopwright.calls.packs import PackCalls
from loopwright.calls.records import RecordCalls
from loopwright.session import config
from loopwright.session.access import Access
from loopwright.session.transport import TIMEOUT, Transport
from loopwright.session.webhooks import Webhooks


class Client(FleetCalls, PackCalls, RecordCalls, PackageCalls, ComparisonCalls, JobCalls):
    """A connection to a service. Close it by `close`, or use it as a context manager.

    A client is thread-safe, except ``last_report`` and ``last_plan``. Each call may raise `CouldNotReach` (there was no
    answer, after retries if repeating does no harm) and a `ServiceError` (the service refused the request; the subclass
    says why). A ``target`` is ``"auto"`` (the service selects it), a TVM target string, tag or JSON text, a dictionary,
    or a ``tvm.target.Target``.
    """

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = TIMEOUT) -> None:
        """Find the service, without connecting to it; the first request connects.

        Args:
            url: URL of the service; by default ``LOOPWRIGHT_URL``, else the saved login, else the service on this
                machine.
            token: token for the service; by default ``LOOPWRIGHT_TOKEN``, else that of the saved login or of the
                service on this machine.
            timeout: seconds, for connecting and for each wait on an answer.

        Raises:
            ValueError: the URL does not begin with ``http://`` or ``https://``.
        """
        super().__init__(Transport(config.resolve(url, token), timeout))
        self.access: Access = Access(self._transport)
        """Users, tokens and usage."""
        self.webhooks: Webhooks = Webhooks(self._transport)
        """Addresses that the service notifies of events."""

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._transport.endpoint.url

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
