"""Who may measure: drift of the reference kernel, and trials lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from db.views import CheckView
from service.fleet.health import FLAGGED, LOST_TOO_OFTEN, TOO_FAR, complaint, drift

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def checks(*secs: float) -> list[CheckView]:
    return [CheckView(each, NOW) for each in secs]


@pytest.mark.parametrize("secs", [(), (1.0,), (1.0, 9.0, 9.0)])
def test_too_few_checks_tell_no_drift(secs: tuple[float, ...]) -> None:
    assert drift(checks(*secs)) is None
    assert complaint(checks(*secs), 0) is None


def test_drift_is_the_median_of_the_latest_over_the_fastest() -> None:
    found = drift(checks(3.0, 2.0, 9.0, 2.2, 2.4, 9.0))
    assert found is not None
    assert found.ratio == pytest.approx(1.2)
    assert not found.flagged


def test_a_slow_beginning_is_no_drift() -> None:
    """The first check came while the machine was busy."""
    assert complaint(checks(5.0, 1.0, 1.0, 1.0), 0) is None


@pytest.mark.parametrize(
    ("latest", "flagged", "held"),
    [(1.0, False, False), (FLAGGED * 1.01, True, False), (TOO_FAR * 0.99, True, False), (TOO_FAR * 1.01, True, True)],
)
def test_drift_is_flagged_and_holds_a_worker_out(latest: float, flagged: bool, held: bool) -> None:
    found = checks(1.0, latest, latest, latest)
    drifted = drift(found)
    assert drifted is not None
    assert drifted.flagged is flagged
    assert (complaint(found, 0) is not None) is held


def test_one_slow_check_holds_nobody_out() -> None:
    assert complaint(checks(1.0, 1.0, 10.0, 1.0), 0) is None


def test_the_complaint_says_how_slow_and_what_to_do() -> None:
    said = complaint(checks(1.0, 4.0, 4.0, 4.0), 0)
    assert said is not None
    assert "4.00 times" in said
    assert "the quarantine ends" in said


def test_lost_trials_hold_a_worker_out() -> None:
    assert complaint([], LOST_TOO_OFTEN - 1) is None
    said = complaint([], LOST_TOO_OFTEN)
    assert said is not None
    assert f"{LOST_TOO_OFTEN} trials were lost" in said
