"""Refusing bodies over the limit before they are held in memory."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import ProblemError, answer


class BodyLimit:
    """ASGI middleware: 413 for a body longer than ``limit`` bytes, whether its length was announced or not."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = answer(
            ProblemError(
                413,
                "body-too-large",
                f"The body is over {self._limit / 2**20:g} MiB. "
                "Submit the module without its weights: schedules do not depend on them.",
            )
        )
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._limit:
            await refusal(scope, receive, send)
            return
        received = 0
        answered = False

        async def counted() -> Message:
            nonlocal received, answered
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit and not answered:
                answered = True
                await refusal(scope, receive, send)
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            if not answered:
                await send(message)

        await self._app(scope, counted, guarded)
