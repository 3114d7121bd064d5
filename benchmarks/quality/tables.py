"""The tables of the report, as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.quality.engines import ENGINES, OURS, RIVALS, STOCK
from benchmarks.quality.outcome import Outcome
from benchmarks.report import table
from loopwright.comparing.protocol import EngineResult


def latencies(found: Sequence[Outcome]) -> str:
    """Return the latency of every engine, in microseconds, and the ratio that the requirements are about.

    An engine without a latency of any case has no column.
    """
    names = [name for name in (OURS, *RIVALS) if any(outcome.latency(name) is not None for outcome in found)]
    rows = []
    for outcome in found:
        ratio = outcome.against_rivals
        shown = "-" if ratio is None else f"{ratio}" if ratio.value >= 1 else f"**{ratio}**"
        shown_latencies = (_us(outcome.latency(name)) for name in names)
        rows.append((outcome.name, outcome.family, *shown_latencies, outcome.best_rival or "-", shown))
    return table(["case", "what", *names, "best rival", "best rival / Loopwright"], rows)


def settings(found: Sequence[Outcome]) -> str:
    """Return for each rival the settings that were fastest, with the number of cases."""
    rows = []
    for rival in RIVALS:
        choices = [choice.variant for outcome in found if (choice := _result(outcome, rival).choice)]
        counted = (f"{name} ({count})" for name, count in Counter(choices).most_common())
        if choices:
            rows.append((rival, "; ".join(counted)))
    return table(["engine", "settings that were fastest (number of cases)"], rows)


def costs(sections: Mapping[str, Sequence[Outcome]]) -> str:
    """Return seconds of tuning and compiling, and the peak memory of the engines' processes, in each section."""
    rows = []
    for section, found in sections.items():
        tuned = [outcome.tuned["seconds"] for outcome in found if outcome.tuned]
        rows.append((section, "tuning, s", _spread(tuned, 0), *("-" for _ in RIVALS)))
        results = {name: [_result(outcome, name) for outcome in found] for name in (OURS, *RIVALS)}
        compiled = [[each.chosen.seconds for each in results[name] if each.chosen] for name in results]
        rows.append((section, "compilation, s", *(_spread(seconds, 1) for seconds in compiled)))
        peaks = [[each.peak_mb for each in results[name] if each.peak_mb is not None] for name in results]
        rows.append((section, "peak memory, MiB", *(_spread(sizes, 0) for sizes in peaks)))
    return table(["cases", "figure", OURS, *RIVALS], rows)


def tuning(sections: Mapping[str, Sequence[Outcome]]) -> str:
    """Return what the jobs searched and certified, and how the time in the user's process differs, in each section."""
    rows = []
    for section, found in sections.items():
        if not (jobs := [outcome.tuned for outcome in found if outcome.tuned is not None]):
            continue
        tasks = [task for job in jobs for task in job["tasks"]]
        over = [ratio for outcome in found if (ratio := outcome.user_over_certified) is not None]
        trials = [trials for outcome in found if (trials := outcome.trials_to_near) is not None]
        rows.append(
            (
                section,
                f"{sum(task['certified'] for task in tasks)} of {len(tasks)}",
                _spread([job["trials"] for job in jobs], 0),
                _spread(trials, 0),
                _spread(over, 2),
            )
        )
    heads = ["cases", "certified functions", "trials", "trials to 95 %", "user's process / certified"]
    return table(heads, rows)


def stock(found: Sequence[Outcome]) -> str:
    """Return the comparison with stock MetaSchedule."""
    rows = [
        (outcome.name, _us(outcome.latency(STOCK)), _us(outcome.latency(OURS)), outcome.against_stock)
        for outcome in found
        if outcome.against_stock is not None
    ]
    heads = ["case", f"{STOCK}, µs", "Loopwright, µs", "ratio"]
    return table(heads, rows) if rows else "No case of these runs was compared with it."


def failures(found: Sequence[Outcome]) -> str:
    """Return every setting of an engine that could not compute some cases, with the engine's message."""
    cases: dict[tuple[str, str, str], list[str]] = {}
    for outcome in found:
        for name, result in outcome.engines.items():
            for variant, message in result.answer.failures.items():
                cases.setdefault((name, variant or "-", message.replace("|", "\\|")), []).append(outcome.name)
    rows = ((*which, ", ".join(names)) for which, names in cases.items())
    return table(["engine", "setting", "message", "cases"], rows) if cases else "Every engine computed every case."


def conditions(sections: Mapping[str, Sequence[Outcome]]) -> str:
    """Return machine, amount of measurement and date of each section, with every value that occurs."""

    def noted(found: Sequence[Outcome], name: str) -> str:
        return _distinct(outcome.conditions[name] for outcome in found)

    rows = [
        ("number of cases", *(len(found) for found in sections.values())),
        ("CPU", *(noted(found, "cpu") for found in sections.values())),
        ("its features", *(_distinct(_features(outcome) for outcome in found) for found in sections.values())),
        ("threads of every engine", *(noted(found, "threads") for found in sections.values())),
        ("processes of an engine x rounds", *(_distinct(map(_rounds, found)) for found in sections.values())),
        ("tuning, at most", *(_distinct(map(_budget, found)) for found in sections.values())),
        ("date", *(noted(found, "date") for found in sections.values())),
        ("code of search and workers", *(noted(found, "code") for found in sections.values())),
    ]
    return table(["", *sections], rows)


def versions(found: Sequence[Outcome]) -> str:
    """Return the versions of the engines' packages that took part."""
    shown = []
    for name, engine in ENGINES.items():
        noted = [_result(outcome, name).answer.versions for outcome in found]
        for package in engine.packages:
            if which := _distinct(each.get(package) for each in noted):
                shown.append(f"{package} {which}")
    return ", ".join(dict.fromkeys(shown))


def _result(outcome: Outcome, engine: str) -> EngineResult:
    """Return the result of an engine; an empty one if it was not asked."""
    return outcome.engines.get(engine, EngineResult())


def _rounds(outcome: Outcome) -> str:
    samples = _result(outcome, OURS).samples
    return f"{len(samples)} x {len(samples[0])}" if samples else ""


def _features(outcome: Outcome) -> str:
    return " ".join(outcome.conditions["features"])


def _budget(outcome: Outcome) -> str:
    if outcome.tuned is None:
        return ""
    budget = outcome.tuned["budget"]
    seconds = f" or {budget['max_seconds']:g} s" if budget["max_seconds"] else ""
    return f"{budget['max_trials']} trials{seconds}"


def _distinct(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value))


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.1f}"


def _spread(values: Sequence[float], digits: int) -> str:
    """Return the median, with the lowest and the highest value if there are several."""
    if not values:
        return "-"
    middle, low, high = (f"{each:,.{digits}f}" for each in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle
