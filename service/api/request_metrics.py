"""How long requests take, by the template of their route, so that the number of series is limited."""

from __future__ import annotations

import time

from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api import metric_catalogue as catalogue

API_PREFIX = "/api/v1"
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""What is asked every few seconds, of which neither logs nor traces say anything while it is well."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""A path that is no route of the API, such as a page of the dashboard, and a method that nobody uses."""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the buckets. A sandbox has 30 s for a call."""


class RequestMetrics:
    """The series of one app. `CountedRequests` fills them."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # Prometheus has no use for them
        self.registry = CollectorRegistry()
        seconds, in_flight = catalogue.HTTP_REQUEST_DURATION_SECONDS, catalogue.HTTP_REQUESTS_IN_FLIGHT
        self.seconds = Histogram(seconds.name, seconds.help, seconds.labels, buckets=_SECONDS, registry=self.registry)
        self.in_flight = Gauge(in_flight.name, in_flight.help, registry=self.registry, multiprocess_mode="livesum")


class CountedRequests:
    """ASGI middleware: counts each request once. Outermost, so that refused ones are counted too."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        answered = False

        def count(status: int) -> None:
            nonlocal answered
            answered = True
            method = scope["method"] if scope["method"] in _METHODS else OTHER
            series = self._metrics.seconds.labels(route_of(scope), method, f"{status // 100}xx")
            series.observe(time.perf_counter() - started)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and not answered:
                count(message["status"])
            await send(message)

        with self._metrics.in_flight.track_inprogress():
            try:
                await self._app(scope, receive, counted)
            except Exception:
                if not answered:
                    count(500)
                raise


def route_of(scope: Scope) -> str:
    """Return the template of the route that a request was for, such as ``/api/v1/jobs/{job_id}``."""
    route = scope.get("route")
    if not isinstance(route, APIRoute):
        return OTHER
    prefix = API_PREFIX if scope["path"].startswith(f"{API_PREFIX}/") else ""
    return prefix + route.path_format
