"""Metrics for Prometheus: names and types as the catalogue lists them, and figures that follow what happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from db import revisions
from loopwright.codegen.kinds import JobState
from service.api.metric_catalogue import METRICS
from service.api.request_metrics import OTHER
from tests.integration.service.conftest import Api
from tests.support import played_fleet
from tests.support.programs import product
from tuner.types import Activity


def families(api: Api) -> dict[str, Metric]:
    answer = api.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(api: Api, sample: str, **labels: str) -> float:
    """The value of a sample, 0 if there is none with these labels."""
    found = [
        each.value
        for family in families(api).values()
        for each in family.samples
        if each.name == sample and each.labels.items() >= labels.items()
    ]
    return sum(found)


def exposed(family: Metric) -> str:
    """The name of a family as queries have it."""
    return f"{family.name}_total" if family.type == "counter" else family.name


@pytest.mark.usefixtures("job")
def test_the_catalogue_lists_every_metric_with_its_type_and_labels(api: Api) -> None:
    played_fleet.join(api.database, Activity(builders_busy=1, slot_use=0.5))
    listed = {metric.name: (metric.exposed_kind, metric.labels) for metric in METRICS}
    ours = {exposed(family): family for family in families(api).values() if family.name.startswith("loopwright_")}
    assert len(ours) >= 15
    assert listed.keys() == ours.keys()
    for name, family in ours.items():
        kind, labels = listed[name]
        assert kind == family.type, name
        given = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert set(labels) == given, name


def test_every_metric_says_whether_it_is_the_fleets_or_the_processs(api: Api) -> None:
    for family in families(api).values():
        if family.name.startswith("loopwright_"):
            said = ("From the database." in family.documentation, "Of this process." in family.documentation)
            assert said.count(True) == 1, family.name


@pytest.mark.usefixtures("job")
def test_the_fleets_figures_follow_what_happens(api: Api) -> None:
    assert value(api, "loopwright_jobs", state="succeeded") >= 1
    assert value(api, "loopwright_trials_finished_total", outcome="measured") > 10
    assert value(api, "loopwright_workers", state="measuring") == api.get("/overview")["workers_alive"]
    assert value(api, "loopwright_worker_builders", worker="host/cpu") == 2
    queued, submitted = value(api, "loopwright_jobs", state="queued"), value(api, "loopwright_jobs_submitted_total")
    made = api.submit(product(16))
    assert value(api, "loopwright_jobs", state="queued") == queued + 1
    assert value(api, "loopwright_jobs_submitted_total") == submitted + 1
    assert value(api, "loopwright_oldest_queued_job_age_seconds") > 0
    api.post(f"/jobs/{made['id']}/cancel")
    assert value(api, "loopwright_oldest_queued_job_age_seconds") == 0


def test_a_lease_that_was_lost_is_counted(api: Api) -> None:
    lost = value(api, "loopwright_leases_lost_total", cause="expired")
    made = api.submit(product(168))
    for _ in range(2):
        claimed = api.database.jobs.claim("test", lease_seconds=0)
        assert claimed is not None
        assert claimed.job.id == made["id"]
    assert value(api, "loopwright_leases_lost_total", cause="expired") == lost + 1
    assert api.database.jobs.finish(made["id"], claimed.lease_token, JobState.CANCELLED)


def requests(api: Api, route: str, method: str, status: str) -> float:
    labels = {"route": route, "method": method, "status": status}
    return value(api, "loopwright_http_request_duration_seconds_count", **labels)


def routes(api: Api) -> Iterator[str]:
    for sample in families(api)["loopwright_http_request_duration_seconds"].samples:
        yield sample.labels["route"]


def test_requests_are_counted_by_template_method_and_class_of_status(api: Api, job: dict[str, str]) -> None:
    route = "/api/v1/jobs/{job_id}"
    before = requests(api, route, "GET", "2xx"), requests(api, route, "GET", "4xx")
    api.get(f"/jobs/{job['id']}")
    assert api.http.get("/api/v1/jobs/none", headers=api.headers).status_code == 404
    assert (requests(api, route, "GET", "2xx"), requests(api, route, "GET", "4xx")) == (before[0] + 1, before[1] + 1)
    assert requests(api, "/metrics", "GET", "2xx") > 0


def test_what_callers_make_up_adds_no_series(api: Api) -> None:
    api.http.get("/api/v1/none/1", headers=api.headers)
    api.http.request("BREW", "/pot", headers=api.headers)
    api.http.get("/metrics", headers=api.headers)
    known = set(routes(api))
    for number in range(5):
        api.http.get(f"/api/v1/none/{number}", headers=api.headers)
        api.http.get(f"/page/{number}")
        api.http.get("/metrics", headers={"Host": f"other-{number}"})
        api.http.request(f"BREW{number}", "/pot", headers=api.headers)
    assert set(routes(api)) == known
    assert OTHER in known
    methods = {sample.labels["method"] for sample in families(api)["loopwright_http_request_duration_seconds"].samples}
    assert not any(method.startswith("BREW") for method in methods)


def test_a_refused_request_is_counted(api: Api) -> None:
    before = requests(api, OTHER, "GET", "4xx")
    assert api.http.get("/api/v1/jobs").status_code == 401
    assert requests(api, OTHER, "GET", "4xx") == before + 1


def test_without_the_database_the_process_still_tells_of_itself(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert value(api, "loopwright_database_up") == 1

    def away(_: object) -> None:
        raise ConnectionError("the database is away")

    monkeypatch.setattr("db.upkeep.gauges.Gauges.revision", away)
    found = families(api)
    assert found["loopwright_database_up"].samples[0].value == 0
    assert "loopwright_jobs" not in found
    assert {"loopwright_build_info", "loopwright_sandbox_calls", "process_resident_memory_bytes"} <= found.keys()
    assert "the database is away" in caplog.text


def test_of_tables_that_the_code_does_not_know_the_revision_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown_column(_: object) -> None:
        raise LookupError("no such column")

    monkeypatch.setattr("db.upkeep.gauges.Gauges.queue", unknown_column)
    found = families(api)
    assert found["loopwright_database_up"].samples[0].value == 1
    assert found["loopwright_schema_info"].samples[0].labels == {"revision": revisions.newest()}
    assert "loopwright_jobs" not in found
