"""What a job can cost others: its search and its programs are stopped, whatever they are at."""

from __future__ import annotations

import time

import pytest

from tests.support.ledger import check_ledger
from tests.support.programs import endless, long_chain, product
from tests.support.service import Service
from tests.support.waiting import wait_for

AT_ONCE = 10.0
"""Seconds, on a loaded machine; what is stopped would take at least three times as long."""


def _running(service: Service, job_id: str) -> None:
    wait_for("the start", lambda: service.job(job_id)["state"] == "running", 60)


def _cancelled(service: Service, job_id: str) -> float:
    """Return how long the job's end took."""
    asked = time.monotonic()
    service.http.post(f"/api/v1/jobs/{job_id}/cancel")
    assert service.finished(job_id)["state"] == "cancelled"
    return time.monotonic() - asked


@pytest.mark.whole
def test_a_job_is_cancelled_while_it_searches(service: Service) -> None:
    job_id = service.submit(long_chain(200), trials=64)
    _running(service, job_id)
    time.sleep(3)  # by now it makes its first batch
    assert _cancelled(service, job_id) < AT_ONCE
    assert service.items(f"/jobs/{job_id}/trials") == []


@pytest.mark.whole
def test_time_ends_while_a_job_searches(service: Service) -> None:
    job = service.finished(service.submit(long_chain(200), budget={"max_trials": 64, "max_seconds": 3}))
    assert job["state"] == "succeeded"
    [task] = job["tasks"]
    assert task["certified"]
    assert task["trials"] == 0


@pytest.mark.whole
def test_a_cancelled_program_leaves_the_devices_slot(service: Service) -> None:
    job_id = service.submit(endless(), trials=8)

    def measured() -> bool:
        slots = [worker["slot"] for worker in service.items("/workers")]
        return any(slot is not None and slot["job_id"] == job_id for slot in slots)

    wait_for("it to be measured", measured)
    assert _cancelled(service, job_id) < AT_ONCE
    started = time.monotonic()
    # A plain target is another than the worker's own, measured on the same machine.
    job = service.tuned(product(34), trials=4, target="llvm")
    check_ledger(service, job)
    assert time.monotonic() - started < 25, "the measurer was waited for until its deadline"
    assert job["target"]["kind"] == "llvm"
    best = service.get(f"/workloads/{job['tasks'][0]['workload_hash']}/best", target="llvm")
    assert best["target"] == job["target"]


@pytest.mark.whole
def test_many_products_in_one_function_are_tuned(service: Service) -> None:
    """TVM's rules would try 3^12 ways to cache them."""
    job = service.tuned(_products(12), trials=8)
    check_ledger(service, job)
    assert job["tasks"][0]["trials"] == 8


def _products(count: int, n: int = 32) -> str:
    chain = long_chain(count, n)
    for stage in range(1, count + 1):
        chain = chain.replace(f"X{stage - 1}[vi, vk] * T.float32(0.01)", f"X{stage - 1}[vi, vk] * X0[vk, vj]")
    return chain
