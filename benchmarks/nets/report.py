"""The report on nets as users deploy them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.nets.outcome import NetOutcome, outcomes
from benchmarks.nets.what import What
from benchmarks.quality import tables
from benchmarks.quality.requirements import mean, ratios_of, worst
from benchmarks.report import Report, table
from benchmarks.requirement import Requirement, highest_cost, median_and_worst, missed, verdicts
from benchmarks.runner import latest
from loopwright.comparing.ratios import Ratio

_OURS, _RIVAL = "Loopwright", "ONNX Runtime"


def packed(raw: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last line of each net."""
    return list(latest(raw, "net").values())


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    found = outcomes(lines)
    required = list(requirements(found))
    idle, loaded = [net.idle for net in found], [net.loaded for net in found]
    versions = {
        f"{package} {version}"
        for net in idle
        for result in net.engines.values()
        for package, version in result.answer.versions.items()
    }
    return {
        "seconds": ", ".join(sorted({f"{net.tuned['max_seconds']:g}" for net in found})),
        "versions": ", ".join(sorted(versions)),
        "missed": missed(required),
        "requirements": verdicts(required),
        "idle": tables.latencies(idle),
        "loaded": tables.latencies(loaded),
        "jobs": _jobs(found),
        "clocks": _clocks(found),
        "starts": _starts(found),
        "settings": tables.settings(idle),
        "failures": tables.failures(idle),
    }


def requirements(found: Sequence[NetOutcome]) -> Iterator[Requirement]:
    """Yield every requirement. Ratios are the best rival's latency over Loopwright's."""
    idle = [net.idle for net in found]
    yield mean("nets over the best rival, geometric mean", 1.25, 1.4, ratios_of(idle))
    yield worst("nets over the best rival, worst", 1.05, 1.15, idle)
    budgets = {net.name: net.job_over_budget for net in found}
    yield highest_cost("time of the job over its max_seconds, worst", budgets, 1.1, 1.0)
    off = {net.name: 100 * abs(each.value - 1) for net in found if (each := net.measured_over_process) is not None}
    yield highest_cost("measured_us against the user's process, worst difference", off, 10, 5, " %")
    sums = {net.name: each.value for net in found if (each := net.process_over_sum) is not None}
    yield from median_and_worst("user's process over the sum of certificates", sums, (1.15, 1.05), (1.3, 1.15))
    what = "the same nets beside two busy processes, over the best rival, geometric mean"
    yield mean(what, 1.0, 1.2, ratios_of([net.loaded for net in found]))
    memory = {net.name: _over_rival(net, "resident_mib") for net in found}
    yield highest_cost(f"resident memory of a fresh process over {_RIVAL}'s, worst", memory, 1.5, 1.0)
    seconds = {net.name: net.start(_OURS, "seconds") for net in found}
    yield highest_cost("second start: seconds to load a compiled net, worst", seconds, 0.5, 0.2, " s")


def _jobs(found: Sequence[NetOutcome]) -> str:
    """Return what the jobs took, and what the service says of the nets, beside the later time in the user's process."""
    heads = (
        "net", "functions", "certified", "job, s", "over max_seconds", "sum of certificates", "measured_us",
        "user's process", "process / sum", "measured / process",
    )  # fmt: skip
    rows = (
        (
            net.name,
            len(net.tuned["tasks"]),
            sum(task["certified"] for task in net.tuned["tasks"]),
            f"{net.tuned['seconds']:.0f}",
            f"{net.job_over_budget:.2f}",
            *(_whole(value) for value in (net.tuned["sum_us"], net.tuned["measured_us"], net.process_us)),
            _over(net.process_us, net.tuned["sum_us"]),
            _over(net.tuned["measured_us"], net.process_us),
        )
        for net in found
    )
    return table(heads, rows, right=True)


def _clocks(found: Sequence[NetOutcome]) -> str:
    """Return what a call takes in the user's process and on the fleet in the same rounds."""
    if all(net.process_over_sum is None and net.measured_over_process is None for net in found):
        return "No net of this run was measured so."
    heads = ("net", "certified functions", "whole model", "user's process", "process / functions", "model / process")
    rows = (
        (
            net.name,
            *(_whole(value) for value in (net.fleet_us(What.FUNCTIONS), net.fleet_us(What.MODEL), net.process_us)),
            *(_shown(ratio) for ratio in (net.process_over_sum, net.measured_over_process)),
        )
        for net in found
    )
    return table(heads, rows, right=True)


def _starts(found: Sequence[NetOutcome]) -> str:
    heads = ("net", *(f"{engine}, {unit}" for unit in ("s", "MiB") for engine in (_OURS, _RIVAL)), "memory, ratio")
    rows = (
        (
            net.name,
            *(f"{net.start(engine, 'seconds'):.2f}" for engine in (_OURS, _RIVAL)),
            *(f"{net.start(engine, 'resident_mib'):.0f}" for engine in (_OURS, _RIVAL)),
            f"{_over_rival(net, 'resident_mib'):.2f}",
        )
        for net in found
    )
    return table(heads, rows, right=True)


def _over_rival(net: NetOutcome, figure: str) -> float:
    return net.start(_OURS, figure) / net.start(_RIVAL, figure)


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _over(value: float | None, other: float | None) -> str:
    return f"{value / other:.2f}" if value and other else "-"


def _shown(ratio: Ratio | None) -> str:
    return "-" if ratio is None else str(ratio)


REPORT = Report("nets", Path(__file__).with_name("report.md.in"), values, packed=packed)
