"""The report on models of the transformers library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report

ALLOWED = 1e-4
"""Of the largest value of an output."""


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    models = figures["models"]
    graphs = [graph for model in models for graph in model.get("graphs", [])]
    return {name: figures[name] for name in ("transformers", "torch", "tvm", "trials")} | {
        "models": len(models),
        "agree": sum(not complaint(model) for model in models),
        "allowed": f"{ALLOWED:g}",
        "graphs": len(graphs),
        "compiled": sum(graph["state"] == "compiled" for graph in graphs),
        "rows": "\n".join(map(_row, models)),
    }


def complaint(model: dict[str, Any]) -> str:
    """Return what is wrong with a model; empty if it was taken and tuned whole, and agrees with PyTorch."""
    if "error" in model:
        return str(model["error"])
    failed = [task["name"] for task in model["tasks"] if not task["certified"]]
    if model["state"] != "succeeded" or failed:
        return f"{model['state']}: {model['job_error'] or ', '.join(failed)}"
    if missing := sorted(set(model["missing"]) - set(_left_alone(model))):
        return f"not found after tuning: {', '.join(missing)}"
    return "" if model["difference"] <= ALLOWED else "does not agree"


def _left_alone(model: dict[str, Any]) -> list[str]:
    """Return the names of the functions that the job's notes say are not tuned."""
    return [note.split(" is left alone")[0] for note in model["notes"] if " is left alone" in note]


def _row(model: dict[str, Any]) -> str:
    verdict = complaint(model) or "agrees"
    if "error" in model:
        return f"| {model['name']} | `{model['class']}` | | | | | {verdict} | |"
    alone = ", ".join(f"`{name}`" for name in _left_alone(model))
    return (
        f"| {model['name']} | `{model['class']}` | {len(model['tasks'])} | {alone} | {model['outputs']} "
        f"| {model['difference']:.1e} | {verdict} | {_graphs(model)} |"
    )


def _graphs(model: dict[str, Any]) -> str:
    """Return how many graphs of Dynamo run as a program, and why the others do not."""
    graphs = model["graphs"]
    compiled = sum(graph["state"] == "compiled" for graph in graphs)
    reasons = Counter(graph["reason"] or graph["state"] for graph in graphs if graph["state"] != "compiled")
    others = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    agrees = "" if model["graphs_difference"] <= ALLOWED else "; **does not agree**"
    return f"{compiled} of {len(graphs)}{': ' if others else ''}{others}{agrees}"


REPORT = Report("models", Path(__file__).with_name("report.md.in"), values)
