"""What was required of the compiled code before it was measured, and what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.quality.outcome import NEAR, Outcome
from benchmarks.requirement import NO_RESULT, Requirement, median_and_worst
from loopwright.comparing.ratios import Ratio, geometric_mean

_FUSABLE = ("softmax", "gelu", "layer norm", "attention")
_FEW_BITS = (
    ("int8 products", "int8 product", 1.1, 1.5),
    ("int8 convolutions", "int8 convolution", 1.1, 1.4),
    ("int4 weights, rows in int8", "int4 weights, int8 rows", 1.1, 1.3),
    ("int4 weights, rows in float32", "int4 weights", 1.1, 1.3),
    ("weights of 8 and 16 bits, one row", "one row", 1.5, 1.9),
    ("attention of one query", "decode attention", 1.5, 2.0),
)
"""What, the family of its cases, and the ratios that are required and aimed at. Results that are too far off, as those
of saturating products may be, are no rival's."""
_SMALL = 20e-6
"""Certified seconds of an operator below which a call counts as much as the work."""
_QUANTISED_MODELS = ("int8 throughout", "int8 products")


def requirements(found: Sequence[Outcome]) -> Iterator[Requirement]:
    """Yield every requirement. Ratios are the best rival's latency over Loopwright's."""
    with_their_own = {family for _, family, _, _ in _FEW_BITS}
    operators = [outcome for outcome in found if outcome.kind == "operator" and outcome.family not in with_their_own]
    yield mean("single operators, geometric mean", 1.3, 1.5, ratios_of(operators))
    yield worst("worst single operator", 0.9, 1.0, operators)
    fusable = [outcome for outcome in operators if outcome.family in _FUSABLE]
    yield mean("softmax, gelu, layer norm and attention, geometric mean", 1.0, 1.5, ratios_of(fusable))
    models = [outcome for outcome in found if outcome.kind == "model"]
    whole = [outcome for outcome in models if not is_quantised_model(outcome)]
    yield mean("models end to end, geometric mean", 1.0, 1.3, ratios_of(whole))
    for what, family, must, aim in _FEW_BITS:
        cases = [outcome for outcome in found if outcome.family == family]
        yield mean(f"{what}, geometric mean", must, aim, ratios_of(cases))
    quantised = [outcome for outcome in models if is_quantised_model(outcome)]
    yield mean("quantised models end to end, geometric mean", 1.0, 1.3, ratios_of(quantised))
    yield _low("bf16 products with AMX, geometric mean", found, "bf16", ("amx_bf16",))
    yield _low("int8 products with AMX or VNNI, geometric mean", found, "int8", ("amx_int8", "avx512_vnni", "avx_vnni"))
    stock = [outcome.against_stock for outcome in found if outcome.against_stock is not None]
    yield mean("against stock MetaSchedule at equal trials, geometric mean", 1.5, 2.5, stock)
    trials = [outcome.trials_to_near for outcome in operators if outcome.trials_to_near is not None]
    what = f"trials until {NEAR:.0%} of the final quality, median over single operators"
    median = statistics.median(trials) if trials else None
    yield Requirement(what, 32, 16, median, NO_RESULT if median is None else f"{median:g}", is_cost=True)
    users = [outcome.user_over_certified for outcome in operators if outcome.user_over_certified is not None]
    what = "time in the user's process over the certified time, geometric mean over single operators"
    average = statistics.geometric_mean(users) if users else None
    yield Requirement(what, 1.05, 1.02, average, NO_RESULT if average is None else f"{average:.3f}", is_cost=True)
    small = {
        outcome.name: outcome.user_over_certified
        for outcome in operators
        if outcome.user_over_certified is not None and (outcome.certified or math.inf) < _SMALL
    }
    what = f"time in the user's process over the certified time, operators under {_SMALL * 1e6:g} µs"
    yield from median_and_worst(what, small, (1.15, 1.05), (1.5, 1.2))


def is_quantised_model(outcome: Outcome) -> bool:
    """Return whether a case is a model whose products are of integers."""
    return outcome.kind == "model" and outcome.precision in _QUANTISED_MODELS


def ratios_of(outcomes: Sequence[Outcome]) -> list[Ratio]:
    """Return the ratios over the best rivals, where there are any."""
    return [outcome.against_rivals for outcome in outcomes if outcome.against_rivals is not None]


def mean(what: str, must: float, aim: float, ratios: Sequence[Ratio]) -> Requirement:
    """Return the requirement of the geometric mean of ratios."""
    if not ratios:
        return Requirement(what, must, aim, None, NO_RESULT)
    average = geometric_mean(ratios)
    return Requirement(what, must, aim, average.value, str(average))


def worst(what: str, must: float, aim: float, outcomes: Sequence[Outcome]) -> Requirement:
    """Return the requirement of the lowest ratio over the best rival."""
    ratios = {outcome.name: outcome.against_rivals for outcome in outcomes if outcome.against_rivals is not None}
    if not ratios:
        return Requirement(what, must, aim, None, NO_RESULT)
    name, lowest = min(ratios.items(), key=lambda item: item[1].value)
    return Requirement(what, must, aim, lowest.value, f"{lowest}, {name}")


def _low(what: str, found: Sequence[Outcome], precision: str, any_of: Sequence[str]) -> Requirement:
    """Return a requirement that holds on CPUs with any of these features."""
    outcomes = [outcome for outcome in found if outcome.precision == precision]
    requirement = mean(what, 0.9, 1.3, ratios_of(outcomes))
    features = {feature for outcome in outcomes for feature in outcome.conditions["features"]}
    if requirement.measured is None or features & set(any_of):
        return requirement
    return Requirement(what, 0.9, 1.3, None, f"{requirement.shown} on a CPU without {' or '.join(any_of)}")
