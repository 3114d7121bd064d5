"""Lists of the service's in terminals, notebooks and pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pandas
import pytest
from pydantic import BaseModel

from loopwright import schemas
from loopwright.results.tables import BESTS, GATE, RECHECKS, SHOWN, Column, Layout, Listing, to_pandas
from tests.unit.client.fake_service import best_json


class Thing(BaseModel):
    name: str
    size: int


LAYOUT: Layout[Thing] = Layout((Column("name"), Column("size", is_number=True)), lambda t: (t.name, str(t.size)))


def things(count: int, fetched: list[int]) -> Iterator[Thing]:
    for number in range(count):
        fetched.append(number)
        yield Thing(name=f"<b>{number}</b>", size=number)


def test_items_are_fetched_as_they_are_read_and_once() -> None:
    fetched: list[int] = []
    listing = Listing(things(100, fetched), LAYOUT)
    assert [thing.size for thing in listing.first(3)] == [0, 1, 2]
    assert fetched == [0, 1, 2]
    assert [thing.size for thing in listing] == list(range(100))
    assert [thing.size for thing in listing] == list(range(100))
    assert fetched == list(range(100))


def test_a_notebook_shows_the_beginning_and_escapes() -> None:
    fetched: list[int] = []
    html = Listing(things(1000, fetched), LAYOUT)._repr_html_()
    assert "&lt;b&gt;0&lt;/b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == SHOWN + 1
    assert f"the first {SHOWN}" in html
    assert len(fetched) == SHOWN + 1
    assert "the first" not in Listing(things(2, []), LAYOUT)._repr_html_()


def test_repr_says_how_many() -> None:
    assert repr(Listing(things(2, []), LAYOUT)) == "<2 items>"
    assert repr(Listing(things(1000, []), LAYOUT)) == f"<{SHOWN} items, and more>"


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        to_pandas([Thing(name="a", size=1)])


def test_pandas_gets_a_column_a_field() -> None:
    frame = Listing(things(3, []), LAYOUT).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["name", "size"]
    assert len(frame) == 3


def test_functions_are_called_as_in_their_model() -> None:
    named = {"name": "fused_matmul_add", "source": "layers.{0..11}.fc", "workload_hash": "a" * 32}
    times = {"reference_us": 1.0, "candidate_us": 1.0, "ratio": None, "message": None}
    gate = schemas.GateFunction.model_validate(named | times | {"change": "same"})
    certified = {"certified_best_us": 1.0, "certified_baseline_us": 2.0, "certificate_id": "c", "record_id": "r"}
    recheck = schemas.Recheck.model_validate(named | certified | {"reason": "a user asked", "result": None})
    best = schemas.Best.model_validate(best_json("a" * 32, None) | named)
    rows = GATE.row(gate), RECHECKS.row(recheck), BESTS.row(best)
    assert {row[0] for row in rows} == {"layers.{0..11}.fc fused_matmul_add"}
    assert GATE.row(gate.model_copy(update={"source": None}))[0] == "fused_matmul_add"
