"""The connection that all calls of a client use."""

from __future__ import annotations

from loopwright import schemas
from loopwright.service_bests import ServiceBests
from loopwright.session.transport import Transport

API = "/api/v1"
PAGE_SIZE = 200


class Connection:
    """A connection to a service, and the bests that the service knows."""

    def __init__(self, transport: Transport) -> None:
        """Use this transport; nothing is asked yet."""
        self._transport = transport
        self._bests = ServiceBests(transport)

    def version(self) -> schemas.Version:
        """Return the versions of the service and of its TVM."""
        return self._transport.get(schemas.Version, "/version")
