"""A view of stored data that fails is answered as a fault of the service."""

from __future__ import annotations

from typing import Any

import pytest

from service.api import sandbox
from tests.integration.service.conftest import Api
from tests.support import faults
from workers.child import child_calls


@pytest.mark.parametrize(
    ("function", "path"),
    [("SCRIPTS", "/records/{record}"), ("APPLY", "/jobs/{job}/module")],
)
def test_a_crash_in_a_view_is_no_fault_of_the_request(
    api: Api, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch, function: str, path: str
) -> None:
    address = "/api/v1" + path.format(record=job["tasks"][0]["record_id"], job=job["id"])
    monkeypatch.setattr(sandbox, function, child_calls.Call[Any](faults.__name__, faults.crash.__name__, Any))
    answer = api.http.get(address, headers=api.headers)
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:loopwright:service-fault"
    assert faults.SECRET not in answer.text
    monkeypatch.undo()
    assert api.http.get(address, headers=api.headers).status_code == 200
