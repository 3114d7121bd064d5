"""The tables of the report, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.quality.engines import ENGINES, OURS, RIVALS, STOCK
from benchmarks.quality.outcome import Outcome
from benchmarks.report import table
from loopwright.comparing.protocol import EngineResult


def latencies(found: Sequence[Outcome]) -> str:
    """Return the latency of every engine, in microseconds, and the ratio that the requirements are about."""
    names = (OURS, *RIVALS)
    rows = []
    for outcome in found:
        ratio = outcome.against_rivals
        shown = "-" if ratio is None else f"{ratio}" if ratio.value >= 1 else f"**{ratio}**"
        shown_latencies = (_us(outcome.latency(name)) for name in names)
        rows.append((outcome.name, outcome.family, *shown_latencies, outcome.best_rival or "-", shown))
    return table(["case", "what", *names, "best rival", "best rival / Loopwright"], rows)


def settings(found: Sequence[Outcome]) -> str:
    """Return how many of Loopwright's functions were tuned, and the settings that each rival was fastest with."""

    def setting(outcome: Outcome, rival: str) -> str:
        choice = _result(outcome, rival).choice
        return choice.variant if choice else "-"

    rows = []
    for outcome in found:
        ours = _result(outcome, OURS).chosen
        rows.append((outcome.name, ours.note if ours else "-", *(setting(outcome, rival) for rival in RIVALS)))
    return table(["case", OURS, *RIVALS], rows)


def seconds(found: Sequence[Outcome]) -> str:
    """Return the seconds of tuning and of compiling."""
    rows = []
    for outcome in found:
        stock = f"{outcome.stock['seconds']:.0f}" if outcome.stock else "-"
        tuned = f"{outcome.tuned['seconds']:.0f}" if outcome.tuned else "-"
        rows.append((outcome.name, tuned, stock, *(_compiled(outcome, name) for name in (OURS, *RIVALS))))
    return table(["case", "Loopwright's tuning", f"{STOCK}'s tuning", OURS, *RIVALS], rows)


def memory(found: Sequence[Outcome]) -> str:
    """Return the peak memory of the engines' processes."""
    rows = [(outcome.name, *(_whole(_result(outcome, name).peak_mb) for name in (OURS, *RIVALS))) for outcome in found]
    return table(["case", OURS, *RIVALS], rows)


def tuning(found: Sequence[Outcome]) -> str:
    """Return what the service certified, what the user's process takes, and how many trials were needed."""
    rows = []
    for outcome in found:
        if outcome.tuned is None:
            continue
        over, trials = outcome.user_over_certified, outcome.trials_to_near
        rows.append(
            (
                outcome.name,
                len(outcome.tuned["tasks"]),
                outcome.tuned["trials"],
                _us(outcome.certified),
                _us(outcome.latency(OURS)),
                "-" if over is None else f"{over:.2f}",
                "-" if trials is None else trials,
            )
        )
    heads = ["case", "tasks", "trials", "certified, µs", "user's process, µs", "ratio", "trials to 95 %"]
    return table(heads, rows)


def stock(found: Sequence[Outcome]) -> str:
    """Return the comparison with stock MetaSchedule; empty if there was none."""
    rows = [
        (outcome.name, _us(outcome.latency(STOCK)), _us(outcome.latency(OURS)), outcome.against_stock)
        for outcome in found
        if outcome.against_stock is not None
    ]
    return table(["case", f"{STOCK}, µs", "Loopwright, µs", "ratio"], rows) if rows else ""


def failures(found: Sequence[Outcome]) -> str:
    """Return every setting of an engine that could not compute a case, with the engine's message."""
    rows = [
        (outcome.name, name, variant or "-", message.replace("|", "\\|"))
        for outcome in found
        for name, result in outcome.engines.items()
        for variant, message in result.answer.failures.items()
    ]
    return table(["case", "engine", "setting", "message"], rows) if rows else "Every engine computed every case."


def conditions(found: Sequence[Outcome]) -> str:
    """Return machine, threads and versions, each with every value that occurs."""
    noted = [outcome.conditions for outcome in found]
    rows = [
        ("CPU", _distinct(each["cpu"] for each in noted)),
        *(
            (
                f"its features, cases of the kind {kind}",
                _distinct(" ".join(outcome.conditions["features"]) for outcome in found if outcome.kind == kind),
            )
            for kind in dict.fromkeys(outcome.kind for outcome in found)
        ),
        ("threads of every engine", _distinct(each["threads"] for each in noted)),
        ("processes of an engine, and rounds in each", _distinct(_rounds(outcome) for outcome in found)),
        *(
            (
                f"tuning of cases of the kind {kind}",
                _distinct(_budget(outcome) for outcome in found if outcome.kind == kind),
            )
            for kind in dict.fromkeys(outcome.kind for outcome in found)
        ),
        ("date", _distinct(each["date"] for each in noted)),
        ("code of search and workers", _distinct(each["code"] for each in noted)),
    ]
    for name, engine in ENGINES.items():
        versions = [_result(outcome, name).answer.versions for outcome in found]
        shown = [_distinct(each.get(package) for each in versions) for package in engine.packages]
        rows.append(
            (name, ", ".join(f"{what} {which or '-'}" for what, which in zip(engine.packages, shown, strict=True)))
        )
    return table(["", "value"], rows)


def _result(outcome: Outcome, engine: str) -> EngineResult:
    """Return the result of an engine; an empty one if it was not asked."""
    return outcome.engines.get(engine, EngineResult())


def _rounds(outcome: Outcome) -> str:
    samples = _result(outcome, OURS).samples
    return f"{len(samples)} x {len(samples[0])}" if samples else ""


def _budget(outcome: Outcome) -> str:
    if outcome.tuned is None:
        return ""
    budget = outcome.tuned["budget"]
    seconds = f" or {budget['max_seconds']:g} s of search" if budget["max_seconds"] else ""
    return f"at most {budget['max_trials']} trials{seconds}"


def _compiled(outcome: Outcome, engine: str) -> str:
    chosen = _result(outcome, engine).chosen
    return f"{chosen.seconds:.1f}" if chosen else "-"


def _distinct(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value))


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.1f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
