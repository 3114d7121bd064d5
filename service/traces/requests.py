"""A span for each request, in the trace of its caller if the request names one (W3C Trace Context)."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.request_metrics import PROBES, route_of
from service.logs.ids import known


class Traced:
    """ASGI middleware. ``tracer`` is OpenTelemetry's."""

    def __init__(self, app: ASGIApp, tracer: Any) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        caller = extract(Headers(scope=scope))
        with self._tracer.start_as_current_span(scope["method"], caller, kind=SpanKind.SERVER) as span:

            async def traced(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, traced)
            finally:
                # What the request was for is known once it was routed. Its path may have ids that are nobody else's.
                route = route_of(scope)
                span.update_name(f"{scope['method']} {route}")
                span.set_attributes(
                    {
                        "http.request.method": scope["method"],
                        "http.route": route,
                        "loopwright.request_id": known().get("request", ""),
                    }
                )
