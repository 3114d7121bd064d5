"""A comparison as users hold it: shown as a table in terminals and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopwright import schemas
from loopwright.results.tables import ENGINES, to_pandas
from loopwright.results.units import interval_words, latency, plural, ratio

if TYPE_CHECKING:
    from rich.table import Table


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

    @property
    def verdict(self) -> str:
        """Whether the tuned model is faster than the fastest of the others, in one sentence."""
        ours, *others = self.engines
        timed = [engine for engine in others if engine.us is not None and engine.ratio is not None]
        if ours.us is None or not timed:
            return "nothing could be compared: see the reasons above"
        best = min(timed, key=lambda engine: engine.us or 0.0)
        assert best.ratio is not None
        interval = schemas.Range(value=best.ratio.value, low=best.ratio.low, high=best.ratio.high)
        times = f"{ratio(interval.value, interval)} as long ({interval_words(interval)})"
        if best.ratio.low > 1:
            return f"tuned, the model takes {latency(ours.us)}; {best.title} takes {times}"
        if best.ratio.high < 1:
            return f"{best.title} is faster: the tuned model takes {latency(ours.us)}, and {best.title} {times}"
        return f"no difference from {best.title} can be shown: it takes {times} as the tuned model"

    def _repr_html_(self) -> str:
        return ENGINES.html(self.engines, self.caption)

    def __rich__(self) -> Table:
        return ENGINES.rich(self.engines)
