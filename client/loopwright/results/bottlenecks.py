"""The bottlenecks of a job in words and as a table."""

from __future__ import annotations

from loopwright import schemas
from loopwright.results.tables import ALIKE, Column, Layout, Row, called, changed, titled
from loopwright.results.units import interval_words, latency, plural, ratio


def in_words(found: schemas.Bottlenecks) -> list[str]:
    """Return sentences: the function that takes most time, the decision that mattered in it, and the time left."""
    if not found.functions:
        return ["no function has a latency yet"]
    longest = max(found.functions, key=lambda each: each.us)
    share = "" if longest.model_share is None else f", {_share(longest.model_share)} of the functions' time"
    words = [
        f"{called(longest)} takes {latency(longest.us)}{share}{_limit(longest)}{_library(longest)}",
        f"its decision that matters most: {decision_words(longest)}",
    ]
    if found.us is not None and found.left_us is not None:
        unknown = f"; the limits of {latency(found.unknown_us)} are not known" if found.unknown_us else ""
        untimed = f"; {plural(found.untimed, 'function')} more without a latency" if found.untimed else ""
        words.append(
            f"{latency(found.left_us)} of {latency(found.us)} are above what the machine allows{unknown}{untimed}"
        )
    return words


_UNDECIDED = {
    "unscheduled": "none; the best is the program without a schedule",
    "no decisions": "none; its schedule makes no decisions",
}


def decision_words(function: schemas.Bottleneck) -> str:
    """Return the decision that mattered most in a function, what it brings, and how that is known."""
    decision = function.decision
    if decision is None:
        return _UNDECIDED.get(function.undecided or "", "not known; `loopwright record ablate` measures it")
    if isinstance(decision, schemas.EstimatedDecision):
        return (
            f"{decision.name} is {decision.value}, by a model of {plural(decision.trials, 'trial')}, of which it "
            f"explains {_share(decision.importance)}; `loopwright record ablate` measures it"
        )
    changes = "; ".join(changed(change) for change in decision.changes) or "a choice without a name"
    slowdown = decision.slowdown
    if slowdown is None:
        return changes
    if slowdown.low <= 1:
        return f"none that its ablation shows; {changes} takes {interval_words(slowdown)} of the time"
    return f"{changes} takes {ratio(slowdown.value, slowdown)} the time ({interval_words(slowdown)})"


def _share(share: float) -> str:
    """Return a share of one: ``87%``, ``4.2%``."""
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def _limit(function: schemas.Bottleneck) -> str:
    if function.limit is None or function.roof_us is None:
        return ""
    reached = min(1.0, function.roof_us / function.us)
    return f"; {function.limit} limits it, and it reaches {_share(reached)} of that limit"


def _library(function: schemas.Bottleneck) -> str:
    """Return how much faster or slower a library is."""
    gain = _gain(function)
    if function.library is None or gain is None:
        return ""
    if max(gain, 1 / gain) < ALIKE:
        return f"; {function.library.name} is as fast"
    return (
        f"; {function.library.name} is {ratio(gain)} faster"
        if gain > 1
        else (f"; it is {ratio(1 / gain)} faster than {function.library.name}")
    )


def _gain(function: schemas.Bottleneck) -> float | None:
    """Return how many times as fast as the best schedule the library is."""
    library = function.library
    return None if library is None else function.us / (function.calls * library.us)


def _row(function: schemas.Bottleneck) -> Row:
    gain = _gain(function)
    return (
        titled(function),
        latency(function.us),
        "-" if function.model_share is None else _share(function.model_share),
        function.limit or "-",
        "-" if function.roof_us is None else _share(min(1.0, function.roof_us / function.us)),
        latency(function.left_us),
        "-" if gain is None or function.library is None else f"{function.library.name.split()[0]} {ratio(gain)}",
    )


BOTTLENECKS = Layout(
    (
        Column("function", folds=True),
        Column("one run", is_number=True),
        Column("share", is_number=True),
        Column("limit"),
        Column("reached", is_number=True),
        Column("left", is_number=True),
        Column("library is faster", is_number=True),
    ),
    _row,
)
