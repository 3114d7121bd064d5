"""The report on answers without trials."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.requirement import Requirement, missed, verdicts

_STEPS = ("export", "lower", "predict", "build")
_KNOWN = ("lower again", "build again")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    plan = lines[0]
    functions = [line for line in lines if line["kind"] == "function"]
    answers = {line["model"]: line for line in lines if line["kind"] == "answer"}
    shares = [line["certified"] for line in lines if line["kind"] == "share"]
    required = [*_requirements(functions, answers), _OF_OTHERS, _answered_by_pack(shares)]
    return {
        "trials": plan["trials"],
        "functions": len(functions),
        "verdicts": verdicts(required),
        "missed": missed(required),
        "families": table(["family", "functions", "0 trials", "8 trials", "unscheduled"], _families(functions)),
        "ratios": table(["family", "function", "0 trials", "8 trials", "best, µs"], map(_row, functions)),
        "flips": _flips(functions),
        "answers": table(
            ["model", "functions", "predicted", *_STEPS, "total", *_KNOWN, "all known"],
            [_answer(model, answer) for model, answer in answers.items()],
        ),
    }


def _ratio(line: dict[str, Any], name: str) -> float:
    """Return the best program's time over that of a program, or of the unscheduled one if that is faster or alone."""
    seconds = {key: value for key, value in line["seconds"].items() if key != "again"}
    best = min(seconds.values())
    return best / min(seconds.get(name, seconds["unscheduled"]), seconds["unscheduled"])


def _mean(functions: Sequence[dict[str, Any]], name: str) -> float | None:
    return statistics.geometric_mean(_ratio(line, name) for line in functions) if functions else None


def _requirements(functions: Sequence[dict[str, Any]], answers: dict[str, dict[str, Any]]) -> list[Requirement]:
    first = sorted(_ratio(line, "first") for line in functions)
    tenth = first[len(first) // 10] if first else None
    worst = min((_mean(_of(functions, family), "first") or 0.0 for family in _names(functions)), default=None)
    found = [
        _share("0 trials, shapes held out, geometric mean", 0.85, 0.95, _mean(functions, "first")),
        _share("0 trials, shapes held out, 10th percentile", 0.65, 0.80, tenth),
        _share("0 trials, the family with the least geometric mean", 0.70, 0.85, worst),
        _share("8 trials, geometric mean", 0.95, 0.98, _mean(functions, "few")),
    ]
    for model in ("BERT", "ResNet-18"):
        answer = answers.get(model)
        for what, must, aim, steps in (("nothing known", 15.0, 3.0, _STEPS), ("all known", 1.0, 0.3, _KNOWN)):
            seconds = None if answer is None else sum(answer[step] for step in steps)
            shown = "not run" if seconds is None else f"{seconds:.1f} s"
            found.append(Requirement(f"instant answer, {model}, {what}", must, aim, seconds, shown, True, " s"))
    return found


def _answered_by_pack(shares: Sequence[float]) -> Requirement:
    what = "ResNet-18's time that the starter pack answers"
    if not shares:
        return Requirement(what, 0.7, 0.95, None, "not run, with --starter")
    return _share(what, 0.7, 0.95, shares[-1])


def _names(functions: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(line["family"] for line in functions))


def _of(functions: Sequence[dict[str, Any]], family: str) -> list[dict[str, Any]]:
    return [line for line in functions if line["family"] == family]


def _share(what: str, must: float, aim: float, measured: float | None) -> Requirement:
    return Requirement(what, must, aim, measured, "not run" if measured is None else f"{measured:.2f}")


def _families(functions: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for family in _names(functions):
        mine = _of(functions, family)
        ratios = [f"{_mean(mine, name):.2f}" for name in ("first", "few", "unscheduled")]
        rows.append([family, str(len(mine)), *ratios])
    return rows


def _row(line: dict[str, Any]) -> list[str]:
    best = f"{1e6 * min(line['seconds'].values()):.1f}"
    return [line["family"], line["function"], *(f"{_ratio(line, name):.2f}" for name in ("first", "few")), best]


def _flips(functions: Sequence[dict[str, Any]]) -> str:
    """Return in words how often two searches of a function choose differently, and what that costs."""
    twice = [line for line in functions if {"again", "best"} <= line["seconds"].keys()]
    flipped = [line["seconds"] for line in twice if line["flipped"]]
    said = (
        f"{len(twice)} functions were searched twice, with other seeds. {len(flipped)} of them got different programs"
    )
    if not flipped:
        return f"{said}."
    gaps = sorted(max(both["best"], both["again"]) / min(both["best"], both["again"]) - 1 for both in flipped)
    return (
        f"{said}. The slower one takes {statistics.median(gaps):.1%} longer in the median, and {gaps[-1]:.1%} at most."
    )


def _answer(model: str, answer: dict[str, Any]) -> list[str]:
    steps, known = ([answer[step] for step in names] for names in (_STEPS, _KNOWN))
    counts = [str(answer[name]) for name in ("functions", "predicted")]
    return [model, *counts, *(f"{seconds:.2f}" for seconds in (*steps, sum(steps), *known, sum(known)))]


_OF_OTHERS = Requirement(
    "trials to 95 %, with a database of other functions",
    1.5,
    3.0,
    None,
    "1.0x in search.md, 1.1x in a study",
    unit="x fewer",
)
"""A requirement that this benchmark does not measure."""
REPORT = Report("prior", Path(__file__).with_name("report.md.in"), values)
