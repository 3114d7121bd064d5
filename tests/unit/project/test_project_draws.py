"""What a test draws depends on nothing but its name."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from tests.support import draws
from tests.support.draws import numpy_draws, torch_draws

TESTS = Path(__file__).parents[2]
OF_A_MODULE = re.compile(
    r"^\w+(: .+)? = (np\.random\.default_rng|random\.Random|torch\.Generator)\([^)]*\)(\.manual_seed\(\d+\))?$", re.M
)
NUMPY, TORCH = numpy_draws(), torch_draws()


def drawn() -> list[float]:
    return [*NUMPY.random(3), *torch.rand(3, generator=TORCH).tolist(), *torch.rand(3).tolist()]


def test_a_test_draws_the_same_whatever_ran_before_it() -> None:
    first = drawn()
    draws.start("another test")
    other = drawn()
    draws.start("test_a_test_draws_the_same_whatever_ran_before_it")
    assert drawn() == first
    assert not set(first) & set(other)


def test_no_generator_of_a_module_goes_on_from_test_to_test() -> None:
    left = [path.name for path in TESTS.rglob("*.py") if OF_A_MODULE.search(path.read_text())]
    assert not left, f"{left}: a test would draw other numbers when it runs alone; use tests.support.draws"
