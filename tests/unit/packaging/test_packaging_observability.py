"""What Prometheus and Grafana are given fits together, and asks for nothing that /metrics does not have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from db.states import LeaseLoss
from loopwright.codegen.kinds import FailureKind, JobState
from service.api.metric_catalogue import METRICS as CATALOGUE
from service.metrics.fleet import MEASURED
from tests.support.promql import selectors
from tests.unit.docs import documents

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "deploy" / "grafana"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCRAPED: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))}
PANELS = [panel for dashboard in DASHBOARDS.values() for panel in dashboard["panels"]]
EXPRESSIONS = [
    *(rule["expr"] for rule in RULES),
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
]
MONITORING = ROOT / "docs" / "monitoring.md"

# tests/integration/service/test_service_metrics.py compares the catalogue with what /metrics answers.
METRICS = {metric.name: (metric.exposed_kind, set(metric.labels)) for metric in CATALOGUE}
OF_PROMETHEUS = {"up": set[str](), "ALERTS": {"alertstate", "alertname"}}
OF_PROCESSES = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
ADDED = {"job", "instance"}
"""Labels that Prometheus adds to what it scrapes."""
VALUES = {
    ("loopwright_jobs", "state"): {state.value for state in JobState},
    ("loopwright_leases", "state"): {"held", "expired"},
    ("loopwright_trials_finished_total", "outcome"): {MEASURED, *(kind.value for kind in FailureKind)},
    ("loopwright_leases_lost_total", "cause"): {cause.value for cause in LeaseLoss},
    ("loopwright_workers", "state"): {"measuring", "quarantined", "drained", "lost"},
    ("loopwright_webhook_deliveries", "state"): {"pending", "retrying", "given_up"},
    ("loopwright_sandbox_calls", "state"): {"running", "waiting"},
    ("loopwright_database_connections", "state"): {"used", "idle"},
    ("loopwright_http_request_duration_seconds_count", "status"): {"5xx"},
    ("loopwright_http_request_duration_seconds_bucket", "route"): {"other", "/metrics"},
}


def labels_of(metric: str) -> set[str]:
    """The labels of a metric as queries name it. Raises KeyError if there is no such metric."""
    if metric in OF_PROMETHEUS:
        return OF_PROMETHEUS[metric] | ADDED
    if metric in OF_PROCESSES:
        return ADDED
    base = re.sub(r"_(bucket|count|sum)$", "", metric)
    if base != metric and METRICS.get(base, ("", set()))[0] == "histogram":
        return METRICS[base][1] | ADDED | ({"le"} if metric.endswith("_bucket") else set())
    return METRICS[metric][1] | ADDED


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_parses_and_asks_for_what_there_is(expression: str) -> None:
    asked = selectors(expression)
    assert asked
    for metric, matchers in asked:
        assert matchers.keys() <= labels_of(metric), metric
        for label, value in matchers.items():
            if (metric, label) in VALUES:
                assert set(value.split("|")) <= VALUES[metric, label], (metric, label)
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    named = {label.strip() for labels in grouped for label in labels.split(",")}
    assert named <= set().union(*(labels_of(metric) for metric, _ in asked))


@pytest.mark.parametrize("metric", ["loopwright_jobs_total", "loopwright_jobs_bucket", "loopwright_none"])
def test_a_metric_that_is_not_there_is_found(metric: str) -> None:
    with pytest.raises(KeyError):
        labels_of(metric)


def test_an_expression_with_a_mistake_is_refused() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        selectors("sum(rate(loopwright_jobs[5m])")


def test_prometheus_finds_the_api_and_the_rules() -> None:
    (job,) = SCRAPED["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    api = COMPOSE["services"]["api"]
    assert (found["names"], str(found["port"])) == (["api"], api["command"][-1])
    assert {job["job_name"]} == {
        matchers["job"] for each in EXPRESSIONS for _, matchers in selectors(each) if "job" in matchers
    }
    mounted = dict(mount.split(":")[:2] for mount in COMPOSE["services"]["prometheus"]["volumes"])
    assert mounted["./deploy/prometheus"] == "/etc/prometheus"
    for file in SCRAPED["rule_files"]:
        assert (PROMETHEUS / Path(file).relative_to("/etc/prometheus")).is_file()
    assert "--config.file=/etc/prometheus/prometheus.yml" in COMPOSE["services"]["prometheus"]["command"]


def test_every_alert_says_what_is_wrong_for_how_long_and_how_bad_it_is() -> None:
    for rule in RULES:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+m", rule["for"])
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"].endswith(".")
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    """``promtool`` runs them."""
    cases = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())
    assert cases["rule_files"] == ["alerts.yml"]
    fired = {
        case["alertname"]: case["exp_alerts"][0]["exp_labels"]["severity"]
        for test in cases["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert fired == {rule["alert"]: rule["labels"]["severity"] for rule in RULES}


def test_the_documentation_says_what_to_do_about_each_alert() -> None:
    assert [row[0].strip("`") for row in documents.table(MONITORING, "alert")] == [rule["alert"] for rule in RULES]


def test_dashboards_are_provisioned_with_their_source() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/loopwright.yml").read_text())["providers"]
    mounted = dict(mount.split(":")[1::-1] for mount in COMPOSE["services"]["grafana"]["volumes"])
    assert ROOT / mounted[provider["options"]["path"]] == GRAFANA / "dashboards"
    assert ROOT / mounted["/etc/grafana/provisioning"] == GRAFANA / "provisioning"
    home = Path(COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.stem in DASHBOARDS
    assert DASHBOARDS.keys() == {"overview", "fleet", "api"}
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS)
    for panel in PANELS:
        for each in (panel, *panel["targets"]):
            assert each["datasource"] == {"type": "prometheus", "uid": source["uid"]}


def test_every_metric_of_the_fleet_is_on_a_dashboard_or_in_a_rule() -> None:
    asked = {metric for expression in EXPRESSIONS for metric, _ in selectors(expression)}
    shown = {re.sub(r"_(bucket|count|sum)$", "", metric) for metric in asked} | asked
    assert METRICS.keys() <= shown
