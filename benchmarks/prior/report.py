"""The report on answers without trials."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.requirement import Requirement, missed, verdicts

_STEPS = ("export", "lower", "predict", "build")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    plan = lines[0]
    functions = [line for line in lines if line["kind"] == "function"]
    answers = {line["model"]: line for line in lines if line["kind"] == "answer"}
    required = _requirements(functions, answers)
    return {
        "trials": plan["trials"],
        "functions": len(functions),
        "verdicts": verdicts(required),
        "missed": missed(required),
        "families": table(["family", "functions", "0 trials", "8 trials", "unscheduled"], _families(functions)),
        "ratios": table(["family", "function", "0 trials", "8 trials", "best, µs"], map(_row, functions)),
        "answers": table(
            ["model", "functions", "predicted", *_STEPS, "total", "if all are known"],
            [_answer(model, answer) for model, answer in answers.items()],
        ),
    }


def _ratio(line: dict[str, Any], name: str) -> float:
    """Return the best program's time over that of a program, or of the unscheduled one if that is faster or alone."""
    seconds = line["seconds"]
    best = min(seconds.values())
    return best / min(seconds.get(name, seconds["unscheduled"]), seconds["unscheduled"])


def _mean(functions: Sequence[dict[str, Any]], name: str) -> float | None:
    return statistics.geometric_mean(_ratio(line, name) for line in functions) if functions else None


def _requirements(functions: Sequence[dict[str, Any]], answers: dict[str, dict[str, Any]]) -> list[Requirement]:
    first = sorted(_ratio(line, "first") for line in functions)
    tenth = first[len(first) // 10] if first else None
    found = [
        _share("0 trials, geometric mean", 0.85, 0.95, _mean(functions, "first")),
        _share("0 trials, 10th percentile", 0.65, 0.80, tenth),
        _share("8 trials, geometric mean", 0.95, 0.98, _mean(functions, "few")),
    ]
    for model in ("BERT", "ResNet-18"):
        answer = answers.get(model)
        for what, must, aim, steps in (
            ("nothing known", 15.0, 3.0, _STEPS),
            ("all known", 1.0, 0.3, ("lower", "build")),
        ):
            seconds = None if answer is None else sum(answer[step] for step in steps)
            shown = "not run" if seconds is None else f"{seconds:.1f} s"
            found.append(Requirement(f"instant answer, {model}, {what}", must, aim, seconds, shown, True, " s"))
    return found


def _share(what: str, must: float, aim: float, measured: float | None) -> Requirement:
    return Requirement(what, must, aim, measured, "not run" if measured is None else f"{measured:.2f}")


def _families(functions: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for family in dict.fromkeys(line["family"] for line in functions):
        mine = [line for line in functions if line["family"] == family]
        ratios = [f"{_mean(mine, name):.2f}" for name in ("first", "few", "unscheduled")]
        rows.append([family, str(len(mine)), *ratios])
    return rows


def _row(line: dict[str, Any]) -> list[str]:
    best = f"{1e6 * min(line['seconds'].values()):.1f}"
    return [line["family"], line["function"], *(f"{_ratio(line, name):.2f}" for name in ("first", "few")), best]


def _answer(model: str, answer: dict[str, Any]) -> list[str]:
    steps = [answer[step] for step in _STEPS]
    known = answer["lower"] + answer["build"]
    counts = [str(answer[name]) for name in ("functions", "predicted")]
    return [model, *counts, *(f"{seconds:.2f}" for seconds in (*steps, sum(steps), known))]


REPORT = Report("prior", Path(__file__).with_name("report.md.in"), values)
