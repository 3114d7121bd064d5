"""Portfolios: the extents for which a model is tuned that is called with many.

A call with another extent is padded to the next larger one of them, its bucket, or runs untuned where padding could
change a result. More buckets mean less padding and more to tune. Time is taken to grow linearly with the extent.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeGuard

from loopwright.results.tables import Column, Layout, Row
from loopwright.results.units import plural

if TYPE_CHECKING:
    from rich.console import Group

Calls: TypeAlias = range | Mapping[int, float]
"""Extents that are equally frequent, or the weight of each."""
Extents: TypeAlias = Mapping[str, SupportsIndex | Calls]
"""An extent each for names, and for one of them many."""

MAX_BUCKETS = 8
BUCKET_PRICE = 0.02
"""What one more bucket must save, as a fraction of the time that all calls would take without padding. Not tuned."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """An extent to tune for: which share of the calls it is for, from what extent on, and the work that padding adds to
    theirs (0.25 is a quarter of it)."""

    extent: int
    """What to tune for, and what calls are padded to."""
    smallest: int
    """The smallest extent of the calls that it is for."""
    calls: float
    """Share of all calls that it is for."""
    padding: float
    """Work that padding adds to that of these calls: 0.25 is a quarter of it."""


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The buckets of one symbolic extent, the smallest first. ``shapes=`` takes it, too."""

    name: str
    """The symbolic extent."""
    buckets: tuple[Bucket, ...]
    """What to tune for."""
    extents: int
    """How many extents the calls have."""
    calls: float
    """The share of all calls that have a bucket."""
    padding: float
    """The work that padding adds to that of these calls."""
    padding_of_one: float
    """The same with one bucket, the largest extent."""
    not_padded: str | None = None
    """Why calls are not padded; None if they are."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Values of other symbolic extents."""

    @property
    def shapes(self) -> list[dict[str, int]]:
        """What to tune for, as `Client.submit` takes it."""
        return [self.shape(bucket.extent) for bucket in self.buckets]

    def shape(self, extent: int) -> dict[str, int]:
        """Return the values of all symbolic extents for a bucket.

        Args:
            extent: the bucket's.
        """
        return {**self.fixed, self.name: extent}

    def __str__(self) -> str:
        found = f"{plural(len(self.buckets), 'bucket')} for {plural(self.extents, 'extent')} of {self.name}"
        if self.not_padded is not None:
            return (
                f"{found}, which {self.calls:.1%} of the calls have; the others run untuned, because padding could "
                f"change results: {self.not_padded}"
            )
        return (
            f"{found}: padding adds {self.padding:.1%} to the work; it would add {self.padding_of_one:.1%} with one "
            "bucket, and nothing with a bucket for each extent"
        )

    def _repr_html_(self) -> str:
        return BUCKETS.html(self.buckets, str(self))

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        return Group(Text(str(self)), BUCKETS.rich(self.buckets))


def is_portfolio(shapes: object) -> TypeGuard[Portfolio | Extents]:
    """Return whether ``shapes`` gives many values of an extent, or is a plan for them."""
    if isinstance(shapes, Mapping):
        return any(isinstance(calls, range | Mapping) for calls in shapes.values())
    return isinstance(shapes, Portfolio)


def plan_shapes(
    shapes: Extents,
    *,
    max_buckets: int = MAX_BUCKETS,
    bucket_price: float = BUCKET_PRICE,
    not_padded: str | None = None,
) -> Portfolio:
    """Choose the buckets of a symbolic extent; `Client.plan_shapes` does it for a model, which it asks about padding.

    Args:
        shapes: ``{"n": range(1, 257)}``, extents that are equally frequent, or ``{"n": {1: 900, 16: 50, 128: 50}}``,
            with the weight of each; other names with one value.
        max_buckets: buckets at most.
        bucket_price: what one more bucket must save at least, as a fraction of the time without padding.
        not_padded: why calls cannot be padded. A bucket is then for calls of its own extent alone, and those buckets
            are chosen whose calls take the largest shares of the time, each at least the price of a bucket.

    Raises:
        TypeError: an extent is no whole number.
        ValueError: none or several names have many extents, or one has none, one below 1, or no weight.
    """
    many = {name: calls for name, calls in shapes.items() if isinstance(calls, range | Mapping)}
    if len(many) != 1:
        raise ValueError(
            f"shapes gives ranges of {', '.join(map(repr, many)) or 'no extent'}; give one of one extent, as "
            "{'n': range(1, 257)}, or what to tune for as a list: [{'n': 1, 'm': 8}, {'n': 64, 'm': 8}]"
        )
    if max_buckets < 1:
        raise ValueError(f"max_buckets={max_buckets} leaves nothing to tune; give 1 or more")
    [(name, frequencies)] = many.items()
    weights = _weights(name, frequencies)
    extents, total = list(weights), sum(weights.values())
    if not_padded is None:
        chosen = _padded(weights, max_buckets, bucket_price)
    else:
        chosen = _exact(weights, max_buckets, bucket_price)
    buckets, own, padded = [], 0.0, 0.0
    for below, extent in pairwise([0, *chosen]):
        members = [each for each in extents if (below < each <= extent if not_padded is None else each == extent)]
        calls = sum(weights[each] for each in members)
        work = sum(weights[each] * each for each in members)
        own, padded = own + work, padded + calls * extent
        buckets.append(Bucket(extent, members[0], calls / total, calls * extent / work - 1))
    return Portfolio(
        name=name,
        buckets=tuple(buckets),
        extents=len(extents),
        calls=sum(bucket.calls for bucket in buckets),
        padding=padded / own - 1,
        padding_of_one=total * extents[-1] / sum(weights[each] * each for each in extents) - 1,
        not_padded=not_padded,
        fixed={other: operator.index(value) for other, value in shapes.items() if other != name},  # type: ignore[arg-type]
    )


def _weights(name: str, calls: Calls) -> dict[int, float]:
    """Return the positive weights by extent, in order of the extents."""
    frequencies: Mapping[Any, float] = calls if isinstance(calls, Mapping) else dict.fromkeys(calls, 1.0)
    weights = {operator.index(extent): float(weight) for extent, weight in sorted(frequencies.items())}
    if wrong := [extent for extent in weights if extent < 1]:
        raise ValueError(f"shapes gives {name} the extent {wrong[0]}; give extents of 1 and more")
    if wrong := [extent for extent, weight in weights.items() if not 0 <= weight < math.inf]:
        raise ValueError(f"shapes gives {name}={wrong[0]} the weight {weights[wrong[0]]}; give numbers from 0 on")
    weights = {extent: weight for extent, weight in weights.items() if weight}
    if not weights:
        raise ValueError(f"shapes gives {name} no extent that occurs; give some, as range(1, 257)")
    return weights


def _exact(weights: Mapping[int, float], max_buckets: int, price: float) -> list[int]:
    """Return the extents whose calls take the largest shares of the time, at least one, in order."""
    whole = sum(weight * extent for extent, weight in weights.items())
    largest = sorted(weights, key=lambda extent: -weights[extent] * extent)[:max_buckets]
    return sorted([largest[0], *(extent for extent in largest[1:] if weights[extent] * extent >= price * whole)])


def _padded(weights: Mapping[int, float], max_buckets: int, price: float) -> list[int]:
    """Return the buckets that minimise the time of all calls plus the price of the buckets, by dynamic programming.

    The time of the first j extents with one more bucket is the least over i < j of the time of the first i, and
    extent j for the calls between. The best i grows with j, so it is searched by halves: O(m log m) for each bucket.
    """
    extents = list(weights)
    count = len(extents)
    calls = list(accumulate(weights.values(), initial=0.0))
    paid = price * sum(weight * extent for extent, weight in weights.items())
    best: list[float] = [0.0, *[math.inf] * count]
    choices: list[list[int]] = []
    totals: list[float] = []
    for _ in range(min(max_buckets, count)):
        best, choice = _with_one_more(best, extents, calls)
        choices.append(choice)
        totals.append(best[count] + paid * len(choices))
    chosen, end = [], count
    for choice in reversed(choices[: totals.index(min(totals)) + 1]):
        chosen.append(extents[end - 1])
        end = choice[end]
    return chosen[::-1]


def _with_one_more(
    before: Sequence[float], extents: Sequence[int], calls: Sequence[float]
) -> tuple[list[float], list[int]]:
    """Return the least time of the first j extents with one more bucket than ``before``, and its start, for each j."""
    best, choice = [math.inf] * len(before), [0] * len(before)
    open_parts = [(1, len(extents), 0, len(extents) - 1)]
    while open_parts:
        first, last, least, most = open_parts.pop()
        if first > last:
            continue
        middle = (first + last) // 2
        best[middle], choice[middle] = min(
            (before[i] + extents[middle - 1] * (calls[middle] - calls[i]), i)
            for i in range(least, min(most, middle - 1) + 1)
        )
        open_parts += [(first, middle - 1, least, choice[middle]), (middle + 1, last, choice[middle], most)]
    return best, choice


def _row(bucket: Bucket) -> Row:
    extents = str(bucket.extent) if bucket.smallest == bucket.extent else f"{bucket.smallest} to {bucket.extent}"
    return (str(bucket.extent), extents, f"{bucket.calls:.1%}", f"{bucket.padding:.1%}")


BUCKETS = Layout(
    (
        Column("bucket", is_number=True),
        Column("for extents", is_number=True),
        Column("calls", is_number=True),
        Column("padding adds", is_number=True),
    ),
    _row,
)
