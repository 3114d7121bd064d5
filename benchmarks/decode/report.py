"""The report on a decoder beside other engines."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.requirement import Requirement, missed, verdicts
from benchmarks.runner import latest
from loopwright.comparing.ratios import Ratio, paired

_OURS, _OURS_ROUNDED = "Loopwright", "Loopwright, int8 rows"
_PRECISIONS = ("float32", "int8", "int4")
EXACT = 1e-3
"""Error of logits up to which an engine multiplies as the reference does; others round activations."""
_GROWTH_MUST, _GROWTH_AIM = 1.3, 1.1


def packed(raw: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the last line of each engine in each precision, and then those of the searches and the compilations."""
    yield from latest((line for line in raw if line["kind"] == "timed"), "precision", "engine").values()
    yield from latest(
        ({"variant": "", **line} for line in raw if line["kind"] != "timed"), "kind", "precision", "variant"
    ).values()


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    timed = [line for line in lines if line["kind"] == "timed"]
    required = list(requirements(timed))
    shape = timed[0]["shape"]
    return {
        "parameters": f"{timed[0]['parameters'] / 1e6:.0f}",
        **{name: shape[name] for name in ("hidden", "layers", "heads", "key_heads", "vocabulary", "capacity")},
        "prompt": timed[0]["prompt"],
        "steps": timed[0]["steps"],
        "exact": f"{EXACT:g}",
        "missed": missed(required),
        "requirements": verdicts(required),
        "tables": "\n\n".join(_table(timed, precision) for precision in _PRECISIONS if _of(timed, precision)),
        "compiled": ", ".join(
            f"{line['seconds']:.0f} s ({_named(line)})" for line in lines if line["kind"] == "compiled"
        ),
        "tuning": _tuning([line for line in lines if line["kind"] == "tuned"]),
        "versions": ", ".join(sorted(_versions(timed))),
    }


def requirements(timed: Sequence[dict[str, Any]]) -> Iterator[Requirement]:
    """Yield what was required before anything was measured."""
    for precision in ("int8", "int4"):
        for what, name, must, aim in (
            ("tokens per second", "token", 1.0, 1.3),
            (f"time to the first token of {timed[0]['prompt']}", "first", 0.9, 1.2),
        ):
            rivals = [line for line in _of(timed, precision) if line["engine"].startswith(("ONNX", "llama"))]
            ratios = [found for line in rivals if (found := ratio(timed, line, name)) is not None]
            worst = min(ratios, key=lambda each: each.value, default=None)
            shown = str(worst) if worst else "an engine did not run"
            yield Requirement(
                f"{precision}: {what}, over the best of llama.cpp and ONNX Runtime",
                must,
                aim,
                worst.value if worst else None,
                shown,
            )
    for precision in _PRECISIONS:
        ours = next((line for line in _of(timed, precision) if line["engine"] == _OURS), None)
        share = growth(ours) if ours and ours["samples"] else None
        yield Requirement(
            f"{precision}: resident memory over the weights' size",
            _GROWTH_MUST,
            _GROWTH_AIM,
            share,
            "not measured" if share is None else f"{share:.2f}",
            is_cost=True,
        )


def growth(line: dict[str, Any]) -> float:
    """Return the memory that loading the decoder took, over the size of its weights."""
    return float(line["loaded"]["memory"] / line["bytes"])


def ratio(timed: Sequence[dict[str, Any]], rival: dict[str, Any], name: str) -> Ratio | None:
    """Return a rival's time over ours, in the same rounds; None if one of them did not run.

    Ours rounds rows if the rival does.
    """
    name_of_ours = _OURS if rival["loaded"]["error"] <= EXACT else _OURS_ROUNDED
    ours = next((line for line in _of(timed, rival["precision"]) if line["engine"] == name_of_ours), None)
    if ours is None or not ours["samples"] or not rival["samples"]:
        return None
    theirs, own = ([[sample[name] for sample in line["samples"]]] for line in (rival, ours))
    return paired(theirs, own)


def _of(timed: Sequence[dict[str, Any]], precision: str) -> list[dict[str, Any]]:
    return [line for line in timed if line["precision"] == precision]


def _table(timed: Sequence[dict[str, Any]], precision: str) -> str:
    lines = _of(timed, precision)
    heads = ("engine", "tokens/s", "ratio", "first token", "ratio", "memory", "error of logits", "loaded in")
    title = f"### {precision}: weights of {lines[0]['bytes'] / 1e6:.0f} MB"
    return f"{title}\n\n{table(heads, (_row(timed, line) for line in lines), right=True)}"


def _row(timed: Sequence[dict[str, Any]], line: dict[str, Any]) -> tuple[str, ...]:
    if not line["samples"]:
        return (line["engine"], f"did not run: {line['loaded']['failure'] or 'ended'}", *[""] * 6)
    first, token = (statistics.median(sample[name] for sample in line["samples"]) for name in ("first", "token"))
    ratios = {
        name: "" if line["engine"].startswith(_OURS) else str(ratio(timed, line, name) or "")
        for name in ("first", "token")
    }
    error = line["loaded"]["error"]
    return (
        line["engine"],
        f"{1 / token:.1f}",
        ratios["token"],
        f"{1e3 * first:.0f} ms",
        ratios["first"],
        f"{growth(line):.2f}",
        f"{error:.0e}" if error <= EXACT else f"**{error:.0e}**",
        f"{line['loaded']['seconds']:.0f} s",
    )


def _tuning(lines: Sequence[dict[str, Any]]) -> str:
    heads = ("weights", "program", "functions", "trials", "time of one call before", "after")
    return table(heads, (_tuned(_named(line), job) for line in lines for job in line["jobs"]), right=True)


def _named(line: dict[str, Any]) -> str:
    """Return the weights that a line is about, and how they are multiplied."""
    return ", ".join(filter(None, (line["precision"], line.get("variant"))))


def _tuned(weights: str, job: dict[str, Any]) -> tuple[object, ...]:
    """Return the row of a job; the times are sums over functions, as often as they are called."""
    known = [task for task in job["tasks"] if task[2] is not None and task[3] is not None]
    before, after = (sum(task[1] * task[place] for task in known) / 1e3 for place in (2, 3))
    program = "1 token" if job["length"] == 1 else f"{job['length']} tokens"
    return weights, program, len(job["tasks"]), job["trials"], f"{before:.1f} ms", f"{after:.1f} ms"


def _versions(timed: Sequence[dict[str, Any]]) -> set[str]:
    return {f"{name} {version}" for line in timed for name, version in line["loaded"]["versions"].items()}


REPORT = Report("decode", Path(__file__).with_name("report.md.in"), values, packed=packed, options=" --rivals PYTHON")
