"""List the metrics, from the service's catalogue."""

from __future__ import annotations

from docs.hooks.generate.tables import code, table
from service.api.metric_catalogue import METRICS


def metric_page() -> str:
    """Return one table of all metrics."""
    rows = [
        (code(each.name), each.exposed_kind, ", ".join(map(code, each.labels)), f"{each.meaning} {each.source}")
        for each in METRICS
    ]
    return table(("metric", "type", "labels", "meaning"), rows)
