"""Traces are off and not even imported unless configured; missing packages are named; else spans reach a collector."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service.settings import TraceSettings
from service.traces import tracer
from tests.support.waiting import wait_for


@pytest.fixture(autouse=True)
def _traced_no_longer() -> Iterator[None]:
    yield
    tracer.use(None)


def test_nothing_is_imported_unless_an_endpoint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    program = (
        "import sys; from service.settings import Settings, TraceSettings; from service.traces import tracer;"
        "from service.app import create_app; tracer.set_up('api', TraceSettings()); create_app(Settings());"
        "assert tracer.tracer() is None;"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry.sdk')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_endpoint_without_the_packages_is_said_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    tracer.set_up("api", TraceSettings(exporter_otlp_endpoint="http://127.0.0.1:9"))
    assert tracer.tracer() is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "no traces are sent" in record.getMessage()
    assert "requirements/otel.txt" in record.getMessage()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExportTraceServiceRequest]]:
    """What a collector on loopback receives."""
    received: list[ExportTraceServiceRequest] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            received.append(ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield received
        server.shutdown()
        thread.join()


def test_spans_reach_a_collector(collector: list[ExportTraceServiceRequest]) -> None:
    tracer.set_up("controller", TraceSettings())
    with tracer.tracer().start_as_current_span("job"):
        pass
    wait_for("the spans", lambda: bool(collector))
    (sent,) = collector[0].resource_spans
    attributes = {attribute.key: attribute.value.string_value for attribute in sent.resource.attributes}
    assert attributes["service.name"] == "loopwright-controller"
    assert [span.name for scope in sent.scope_spans for span in scope.spans] == ["job"]
