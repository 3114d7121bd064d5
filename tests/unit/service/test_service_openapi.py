"""The dashboard is typed by the interface that the service really has."""

from __future__ import annotations

import json

from service.app import create_app
from service.settings import Settings
from tests.support.service import ROOT


def test_the_dashboards_schema_is_the_applications() -> None:
    kept = json.loads((ROOT / "service/dashboard/openapi.json").read_text())
    assert kept == create_app(Settings()).openapi(), "run scripts/openapi"
