"""The least time in which a device can compute a function, by its measured peaks: the roofline model.

Williams, Waterman and Patterson: Roofline, an insightful visual performance model (2009). A function that is called
again and again finds its arguments in the smallest memory that has room for all of them, so that the rate of that
memory is the limit, not that of the DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass

from db.views import Peaks, WorkloadView

ARITHMETIC = "arithmetic"
DRAM = "DRAM"
_ABOVE = 1.25
"""Share of the measured time above which a roof is none: the work was counted wrongly, as that of a gather, which reads
little of its table, or the peaks were measured on a busy machine. Not tuned."""


@dataclass(frozen=True, slots=True)
class Roof:
    """Least seconds of a call, and what limits it: `ARITHMETIC`, or the name of a memory."""

    seconds: float
    limit: str


def moved_bytes(workload: WorkloadView) -> int:
    """Return the least number of bytes that a call reads and writes: each argument once."""
    return sum(info.bytes for info in workload.args)


def roof(workload: WorkloadView, peaks: Peaks | None, measured: float | None) -> Roof | None:
    """Return the roof of a function of which a call took ``measured`` seconds.

    None without peaks, if they are of another data type than its arithmetic, and if the call took less.
    """
    flop = workload.operation.flop
    if peaks is None or (flop and workload.operation.dtype != peaks.dtype):
        return None
    moved = moved_bytes(workload)
    memory, rate = memory_of(moved, peaks)
    arithmetic, transfer = (flop or 0.0) / peaks.flops, moved / rate
    if measured is not None and max(arithmetic, transfer) > _ABOVE * measured:
        return None
    return Roof(arithmetic, ARITHMETIC) if arithmetic >= transfer else Roof(transfer, memory)


def memory_of(moved: int, peaks: Peaks) -> tuple[str, float]:
    """Return the name and the rate, in bytes per second, of the smallest memory that has room for so many bytes."""
    found = next((level for level in peaks.caches if moved <= level.bytes), None)
    return (DRAM, peaks.bytes_per_s) if found is None else (found.name, found.bytes_per_s)
