"""The tracer of this process: none, unless a collector is configured and OpenTelemetry is installed."""

from __future__ import annotations

import logging
from typing import Any

from loopwright.version import VERSION
from service.settings import TraceSettings

_PACKAGES = "requirements/otel.txt"

log = logging.getLogger("loopwright.traces")

_tracer: Any = None


def set_up(role: str, settings: TraceSettings) -> None:
    """Send the spans of this process to the collector of OpenTelemetry's own settings, if they name one.

    ``role`` is what the process is called beside the others. Spans are sent in the background, some seconds later.
    """
    if settings.endpoint is None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("no traces are sent, although OTEL_EXPORTER_OTLP_ENDPOINT is set: %s. Install %s", error, _PACKAGES)
        return
    name = settings.service_name or f"loopwright-{role}"
    resource = Resource.create({"service.name": name, "service.version": VERSION})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider)
    log.info("traces are sent to %s as %s", settings.endpoint, name)


def use(provider: Any) -> None:
    """Trace with this provider from now on; None: not at all."""
    global _tracer
    _tracer = None if provider is None else provider.get_tracer("loopwright")


def tracer() -> Any:
    """Return OpenTelemetry's tracer, or None if this process traces nothing."""
    return _tracer
