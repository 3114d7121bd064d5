"""All metrics of an API process as Prometheus reads them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from db import revisions
from loopwright.codegen.versions import TVM_VERSION
from loopwright.version import VERSION
from service.api import metric_catalogue as catalogue
from service.context import LIVE_SECONDS, Context
from service.metrics.fleet import fleet_metrics, schema_metric

_REVISION = revisions.newest()

log = logging.getLogger("loopwright.metrics")


def exposition(ctx: Context) -> bytes:
    """Return the metrics as text. Those of the fleet are missing while the database does not answer.

    Of several processes behind one port, requests are counted together.
    """
    registry = CollectorRegistry()
    registry.register(_Once(lambda: _process_metrics(ctx)))
    registry.register(_Once(lambda: _of_database(ctx)))
    if (shared := ctx.settings.shared_metrics) is not None:
        requests = CollectorRegistry()
        MultiProcessCollector(requests, path=str(shared))  # type: ignore[no-untyped-call]
        return generate_latest(requests) + generate_latest(registry)
    ProcessCollector(registry=registry)
    return generate_latest(ctx.requests.registry) + generate_latest(registry)


class _Once(Collector):
    """Metrics that are made when they are read. It describes none, for which the registry would read them twice."""

    def __init__(self, read: Callable[[], Iterator[Metric]]) -> None:
        self._read = read

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        return self._read()


def _of_database(ctx: Context) -> Iterator[Metric]:
    up = catalogue.DATABASE_UP.gauge()
    found: list[Metric] = []
    try:
        # First, because tables of another revision may have no answer to the rest.
        found.append(schema_metric(ctx.database))
        found += list(fleet_metrics(ctx.database, LIVE_SECONDS))
    except Exception as error:
        # Whatever keeps the database from answering: what this process knows is worth more then.
        log.warning("the metrics lack what the database knows: %s: %s", type(error).__name__, error)
    up.add_metric([], bool(found))
    yield from (up, *found)


def _process_metrics(ctx: Context) -> Iterator[Metric]:
    yield catalogue.BUILD.info({"version": VERSION, "tvm": TVM_VERSION, "revision": _REVISION})
    yield catalogue.EVENT_STREAMS.gauge(ctx.streams.taken)
    load = ctx.sandbox.load()
    calls = catalogue.SANDBOX_CALLS.gauge()
    calls.add_metric(["running"], load.working)
    calls.add_metric(["waiting"], load.waiting)
    yield calls
    yield catalogue.SANDBOX_CHILDREN.gauge(load.children)
    pool = ctx.database.gauges.connections()
    connections = catalogue.DATABASE_CONNECTIONS.gauge()
    connections.add_metric(["used"], pool.used)
    connections.add_metric(["idle"], pool.idle)
    yield connections
    yield catalogue.DATABASE_CONNECTIONS_MAX.gauge(pool.most)
