"""A comparison as users hold it: shown as a table in terminals and notebooks."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from loopwright import schemas
from loopwright.results.tables import ENGINES, to_pandas
from loopwright.results.units import plural


class Comparison(schemas.Comparison):
    """A model beside other engines on this machine."""

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each engine (needs pandas)."""
        return to_pandas(self.engines)

    @property
    def caption(self) -> str:
        """The conditions, in words."""
        threads = plural(self.threads, "thread")
        return f"{self.machine}, {threads}, {self.precision}; outputs compared with those of {self.reference}"

    def _repr_html_(self) -> str:
        return ENGINES.html(self.engines, self.caption)

    def __rich__(self) -> Table:
        return ENGINES.rich(self.engines)
