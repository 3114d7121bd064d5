"""The report on models of the transformers library, and on real ONNX files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.models.files import FILES
from benchmarks.report import Report, table, unpack
from benchmarks.runner import latest
from loopwright.results.units import latency

_WHEELS = {f"`{file.wheel}`" for file in FILES}
ALLOWED = 1e-4
"""Of the largest value of an output."""


def packed(raw: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last run over the architectures, and that over each file; what was not run again stays."""
    lines = [*(unpack(REPORT.results) if REPORT.results.exists() else ()), *raw]
    runs = [line for line in lines if "models" in line]
    return [*runs[-1:], *latest((line for line in lines if "file" in line), "file").values()]


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    figures, *files = lines
    models = figures["models"]
    graphs = [graph for model in models for graph in model.get("graphs", [])]
    return {name: figures[name] for name in ("transformers", "torch", "tvm", "trials")} | {
        "models": len(models),
        "agree": sum(not complaint(model) for model in models),
        "allowed": f"{ALLOWED:g}",
        "graphs": len(graphs),
        "compiled": sum(graph["state"] == "compiled" for graph in graphs),
        "rows": "\n".join(map(_row, models)),
        "download": ", ".join(sorted({f"`{file['wheel']}=={file['version']}`" for file in files} or _WHEELS)),
        "files": table(_HEADS, map(_file_row, files)),
        "files_conditions": " ".join(dict.fromkeys(map(_conditions, files))),
        "files_agree": (
            f"{sum(not file_complaint(file) for file in files)} of {len(files)} files are accepted, tuned and agree"
            if files
            else "No file has been measured yet"
        ),
    }


_HEADS = (
    "file", "shapes given", "time given", "functions tuned", "not tuned", "difference", "", "ours", "ONNX Runtime",
    "ratio",
)  # fmt: skip


def _conditions(file: dict[str, Any]) -> str:
    noted = file["conditions"]
    return f"{noted['cpu']}, {noted['threads']} threads, {noted['date']}."


def _budget(file: dict[str, Any]) -> str:
    """Return the limit of a job, which was that of its search alone in the first runs."""
    return f"{file['budget']:g} s" + ("" if file.get("limits") == "job" else " of search")


def file_complaint(file: dict[str, Any]) -> str:
    """Return what is wrong with a file; empty if it was taken, tuned and timed, and agrees with ONNX Runtime."""
    if "error" not in file and "difference" not in file:
        return "not compared"
    return complaint(file) or file["failure"] or ""


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _file_row(file: dict[str, Any]) -> tuple[str, ...]:
    shapes = ", ".join(f"`{name}`: {extent}" for name, extent in file["shapes"].items())
    verdict = file_complaint(file) or "agrees"
    if "error" in file:
        return (f"`{file['file']}`", shapes, _budget(file), "", "", "", verdict, "", "", "")
    certified = sum(task["certified"] for task in file["tasks"])
    alone = ", ".join(f"`{name}`" for name in _left_alone(file))
    difference = f"{file['difference']:.1e}" if "difference" in file else ""
    ratio = "{} ({} to {})".format(*map(_shown, file["ratio"])) if file["ratio"] else ""
    times = (latency(file["us"]), latency(file["rival_us"]), ratio)
    tuned = f"{certified} of {len(file['tasks'])}"
    return (f"`{file['file']}`", shapes, _budget(file), tuned, alone, difference, verdict, *times)


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


REPORT = Report("models", Path(__file__).with_name("report.md.in"), values, packed=packed)
