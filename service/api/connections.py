"""Connections with deadlines for idle clients, and with limits of their number for each address and of headers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.patience import RequestPatience
from service.api.shares import Shares
from service.problems import ProblemError

_HEAD_BYTES = 2**16
"""Of the first line and the headers of a request, which the parser itself does not limit. Not tuned."""


class PatientConnection(HttpToolsProtocol):
    """uvicorn's connection, with deadlines for headers, for bodies that the app does not read, and for slow readers.

    A body that is read has its deadlines in `WholeBody`. ``addresses`` counts connections; one too many is dropped.
    """

    def __init__(self, patience: RequestPatience, addresses: Shares, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._patience = patience
        self._addresses = addresses
        self._address: str | None = None
        self._head_bytes = 0
        """That have come of a head that is not whole yet."""
        self._in_body = False
        """Whether the head of a request is there, and its body is not."""
        self._awaited: float | None = None
        """Seconds that what is awaited of the other end may take; None: it is not its turn."""
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        try:
            self._addresses.take(address)
        except ProblemError:
            transport.abort()
            return
        self._address = address
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._await(None)
        self._forget_reader()
        if self._address is not None:
            self._addresses.give_back(self._address)
            self._address = None

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too long.")
        self._look()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._patience.reader, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_reader()

    def _look(self) -> None:
        """Set the deadline for what is awaited of the other end. Bytes that do not end it do not move the deadline."""
        answered = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or (answered and self._in_body):
            self._await(self._patience.rest)
        elif answered and not self.pipeline:
            self._await(self._patience.head)
        else:
            self._await(None)

    def _await(self, seconds: float | None) -> None:
        if seconds == self._awaited:
            return
        self._awaited = seconds
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _forget_reader(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
