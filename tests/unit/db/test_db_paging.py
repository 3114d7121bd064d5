from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.engine.paging import Keyset
from db.errors import InvalidPage
from db.models import Job, Trial

NEWEST = Keyset("newest", Job.created_at, Job.id, descending=True)
FASTEST = Keyset("fastest", Trial.median, Trial.number)


@given(st.datetimes(timezones=st.just(UTC)), st.text())
def test_a_token_brings_back_its_key(time: datetime, id: str) -> None:
    assert NEWEST.decode(NEWEST.encode([time, id])) == [time, id]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1 - 2**31, 2**31 - 1))
def test_a_number_comes_back_exactly(median: float, number: int) -> None:
    assert FASTEST.decode(FASTEST.encode([median, number])) == [median, number]


@given(st.one_of(st.text(), st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode())))
def test_no_other_text_is_a_token(text: str) -> None:
    with pytest.raises(InvalidPage):
        NEWEST.decode(text)


@pytest.mark.parametrize(
    "values",
    [
        ["newest"],
        ["newest", "2030-01-01T00:00:00+00:00"],
        ["newest", "2030-01-01T00:00:00+00:00", 1],
        ["newest", "2030-01-01T00:00:00+00:00", None],
        ["newest", "2030-01-01T00:00:00+00:00", "id", "more"],
        ["newest", "2030-01-01T00:00:00", "a naive time"],
        ["newest", 5, "id"],
        ["fastest", "2030-01-01T00:00:00+00:00", "id"],
        {"newest": 1},
        None,
    ],
)
def test_a_forged_token_is_refused(values: Any) -> None:
    token = base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")
    with pytest.raises(InvalidPage):
        NEWEST.decode(token)


def test_numbers_that_no_column_holds_are_refused() -> None:
    for values in ("0.5, 18446744073709551616", "0.5, true", "NaN, 1", "Infinity, 1", "1e999, 1"):
        token = base64.urlsafe_b64encode(f'["fastest", {values}]'.encode()).decode().rstrip("=")
        with pytest.raises(InvalidPage):
            FASTEST.decode(token)


def test_a_token_keeps_the_zone_of_its_time() -> None:
    time = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert NEWEST.decode(NEWEST.encode([time, "id"])) == [time, "id"]
