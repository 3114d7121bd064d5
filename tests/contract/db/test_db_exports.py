"""What an export reads: the workloads with bests, the sizes of their modules, the modules and the bests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from db.results import certificates
from tests.contract.db.conftest import World


def test_workloads_whose_best_has_a_trace_are_listed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = world.device_class, replace(world.device_class, model="cpu-2")
    for name in ("c", "a", "b"):
        world.measured(0.5, hash=name)
    world.measured(0.25, hash="a", device_class=there)
    world.measured(2.0, hash="baseline")  # slower than the baseline, which has no trace
    world.measured(2.0, hash="b", device_class=there)
    for page_size in (1, 2, 3, 500):
        monkeypatch.setattr(certificates, "MAX_PAGE_SIZE", page_size)
        assert list(world.db.certificates.workloads_with_bests(None)) == ["a", "b", "c"]
        assert list(world.db.certificates.workloads_with_bests(there.id)) == ["a"]
    of_both = world.db.certificates.bests_of(["c", "a", "baseline", "unknown"], None)
    assert [best.certificate.workload_hash for best in of_both] == ["a", "a", "c"]
    (of_here,) = world.db.certificates.bests_of(["a"], here.id)
    assert (of_here.trace_json, of_here.certificate.value.best_run_secs) == ("[0]", (0.5, 0.5, 0.5))


def test_the_size_of_a_module_is_known_without_reading_it(world: World) -> None:
    modules = {"empty": "", "small": "{}", "accents": "é" * 300, "large": "[1, 2]" * 100_000}
    world.db.workloads.put([replace(world.workload(key), module_json=text) for key, text in modules.items()], "0.27")
    asked = [*modules, "unknown"]
    assert world.db.workloads.modules(asked) == modules
    assert world.db.workloads.module_bytes(asked) == {key: len(text.encode()) for key, text in modules.items()}
    assert world.db.workloads.modules([]) == world.db.workloads.module_bytes([]) == {}
