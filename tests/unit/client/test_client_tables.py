"""Lists of the service's in terminals, notebooks and pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pandas
import pytest
from pydantic import BaseModel

from loopwright.results.tables import SHOWN, Column, Layout, Listing, to_pandas


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
