"""Numbers as people read them."""

from __future__ import annotations

import pytest

from loopwright.results.units import interval_words, latency, ratio
from loopwright.schemas import Range


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, "-"),
        (0.1504, "150 ns"),
        (0.00512, "5.12 ns"),
        (7.785, "7.79 µs"),
        (9.996, "10.0 µs"),
        (99.96, "100 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (25_430, "25.4 ms"),
        (1_500_000, "1.50 s"),
    ],
)
def test_a_latency_has_three_digits_and_the_unit_that_suits(us: float | None, said: str) -> None:
    assert latency(us) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "-"), (0.98, "0.98x"), (1, "1.0x"), (2.73, "2.7x"), (18.03, "18x"), (147.2, "147x")],
)
def test_a_ratio_without_an_interval_has_two_digits(value: float | None, said: str) -> None:
    assert ratio(value) == said


@pytest.mark.parametrize(
    ("value", "low", "high", "said", "words"),
    [
        (2.73, 2.729, 2.731, "2.73x", "2.73x to 2.73x"),
        (2.73, 2.4, 3.1, "2.7x", "2.4x to 3.1x"),
        (18.03, 15.0, 22.0, "18x", "15x to 22x"),
        (1234.0, 1000.0, 1400.0, "1200x", "1000x to 1400x"),
        (3.0, 0.2, 40.0, "3x", "0.2x to 40x"),
        (2.0, 0.0, None, "2x", "over 0x"),
        (1.0, 1.0, 1.0, "1.00x", "1.00x to 1.00x"),
    ],
)
def test_a_ratio_has_the_digits_that_its_interval_bears(
    value: float, low: float, high: float | None, said: str, words: str
) -> None:
    interval = Range(value=value, low=low, high=high)
    assert (ratio(value, interval), interval_words(interval)) == (said, words)
