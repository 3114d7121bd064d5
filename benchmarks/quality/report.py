"""The report on compiled code beside its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality import plots, tables
from benchmarks.quality.outcome import CASE, STEPS, outcomes
from benchmarks.quality.requirements import is_quantised_model, requirements
from benchmarks.report import Report
from benchmarks.requirement import missed, verdicts
from benchmarks.runner import latest


def packed(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a line that describes each case that was timed, and the last line of each of its steps."""
    from benchmarks.quality.cases import CASES  # needs PyTorch; the report does not

    found = latest(lines, "kind", "case")
    for case in CASES.values():
        if ("timed", case.name) not in found:
            continue
        yield {
            "kind": CASE,
            "case": case.name,
            "family": case.family,
            "group": case.kind,
            "precision": case.precision,
            "tolerance": case.tolerance,
        }
        yield from (found[kind, case.name] for kind in STEPS if (kind, case.name) in found)


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    found = outcomes(lines)
    required = list(requirements(found))
    operators = [outcome for outcome in found if outcome.kind == "operator"]
    low = [outcome for outcome in found if outcome.kind == "low precision"]
    quantised = [outcome for outcome in found if is_quantised_model(outcome)]
    models = [outcome for outcome in found if outcome.kind == "model" and not is_quantised_model(outcome)]
    sections = {"single operators": operators, "few bits": low, "models": models, "quantised models": quantised}
    measured = {name: cases for name, cases in sections.items() if cases}
    each_model = {outcome.name: [outcome] for outcome in (*models, *quantised)}
    tolerances = dict(sorted({outcome.precision: outcome.tolerance for outcome in found}.items()))
    return {
        "conditions": tables.conditions(measured),
        "versions": tables.versions(found),
        "missed": missed(required),
        "requirements": verdicts(required),
        "tolerances": "; ".join(f"{value:g} for {precision}" for precision, value in tolerances.items()),
        "operators": tables.latencies(operators),
        "low": tables.latencies(low),
        "models": tables.latencies(models),
        "quantised": tables.latencies(quantised),
        "tuning": tables.tuning({"single operators": operators, "few bits": low} | each_model),
        "stock": tables.stock(found),
        "settings": tables.settings(found),
        "costs": tables.costs(measured),
        "failures": tables.failures(found),
        "plots": "\n".join(f"![{_ALTS[name]}](quality/{name}.png)" for name in plots.figures(found)),
    }


def draw(lines: Sequence[dict[str, Any]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in plots.figures(outcomes(lines)).items():
        figure.savefig(folder / f"{name}.png", dpi=110)


_ALTS = {
    "operator": "Single operators: latencies of the rivals over Loopwright's",
    "low-precision": "Few bits: latencies of the rivals over Loopwright's",
    "model": "Models: latencies of the rivals over Loopwright's",
    "trials": "Single operators: quality of the best so far over the number of trials",
}
REPORT = Report("quality", Path(__file__).with_name("report.md.in"), values, draw, packed, " --rivals PYTHON")
