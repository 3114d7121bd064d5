"""A best schedule as users hold it: what the service answers, shown as a table in terminals and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopwright import schemas
from loopwright.results.tables import BESTS, to_pandas
from loopwright.results.units import latency

if TYPE_CHECKING:
    from rich.table import Table


class Best(schemas.Best):
    """The certified best schedule of a workload on a device class."""

    @classmethod
    def of(cls, best: schemas.Best) -> Best:
        """Return what the service answered as what users hold."""
        return cls.model_construct(**dict(best))

    def __repr__(self) -> str:
        program = "the unscheduled program" if self.is_baseline else f"record {self.record_id}"
        return f"<Best of {self.name} {self.workload_hash[:8]}: {latency(self.best_us)}, {program}>"

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` of one row, with the columns of `Client.bests` (needs pandas)."""
        return to_pandas([self])

    def _repr_html_(self) -> str:
        return BESTS.html([self])

    def __rich__(self) -> Table:
        return BESTS.rich([self])
