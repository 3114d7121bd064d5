"""Numbers as people read them."""

from __future__ import annotations

import pytest

from loopwright.results.units import latency, ratio


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


@pytest.mark.parametrize(("value", "said"), [(None, "-"), (1, "1.00x"), (18.03, "18.0x"), (140.2, "140x")])
def test_a_ratio_loses_the_decimals_that_say_nothing(value: float | None, said: str) -> None:
    assert ratio(value) == said
