"""The main job on SQLite."""

from __future__ import annotations

from tests.acceptance.main_job import MM_RELU, main_job
from tests.support.ledger import check_ledger
from tests.support.service import Service


def test_main_job_on_sqlite(service: Service) -> None:
    main_job(service, trials=12)
    # Unless it is to be searched anew.
    anew = service.tuned(MM_RELU, trials=4, force=True, seed=1)
    assert anew["tasks"][0]["answered_from"] == "search"
    check_ledger(service, anew)
