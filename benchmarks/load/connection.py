"""A client of HTTP/1.1 that takes little of the machine that it shares with the service: its parser is in C."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import httptools

_KEPT_SECONDS = 2.0
"""Connections that nobody used for so long are closed, before the service does and a read finds them closed."""
_TOLD = 200
"""Bytes of an answer that says what is wrong."""


@dataclass(slots=True)
class Answer:
    """``text`` is the beginning of an answer that is not successful."""

    status: int = 0
    tag: str | None = None
    text: bytes = b""


class Connections:
    """Connections to a service, each for one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._free: list[_Connection] = []

    async def ask(self, request: bytes, timeout: float) -> Answer:
        """Send a request, and return the answer when its last byte has come. Raise OSError, or TimeoutError."""
        connection = self._kept()
        async with asyncio.timeout(timeout):
            if connection is None:
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(_Connection, self._host, self._port)
            answer = await connection.ask(request)
        self._free.append(connection)
        return answer

    def _kept(self) -> _Connection | None:
        """Return the connection that was used last, if it is fresh, and close those that are not."""
        old = time.monotonic() - _KEPT_SECONDS
        while self._free and (self._free[0].used < old or self._free[0].is_closed):
            self._free.pop(0).close()
        return self._free.pop() if self._free else None

    def close(self) -> None:
        for connection in self._free:
            connection.close()


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.used = time.monotonic()
        self.is_closed = False
        self._transport: Any = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer = Answer()
        self._done: asyncio.Future[Answer] | None = None

    async def ask(self, request: bytes) -> Answer:
        self._answer, self._done = Answer(), asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._done
        except BaseException:
            self.close()
            raise
        finally:
            self.used = time.monotonic()

    def close(self) -> None:
        self.is_closed = True
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(ConnectionError(str(error)))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        self._end(error or ConnectionError("the service closed the connection"))

    def _end(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"etag":
            self._answer.tag = value.decode()

    def on_headers_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if self._answer.status >= 400 and len(self._answer.text) < _TOLD:
            self._answer.text += body[:_TOLD]

    def on_message_complete(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(self._answer)
