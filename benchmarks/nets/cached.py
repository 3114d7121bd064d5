"""Loopwright as a service that serves a net uses it: `Client.compile` with a cache, on a file of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import loopwright
from benchmarks.nets.fresh import CACHE
from loopwright.comparing.case import Array, Case
from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.packaging.load import PackagedModel, as_tensor


def compiled(net: Path) -> tuple[PackagedModel, str]:
    """Return a net out of the cache, in which it is afterwards in any case, and how many of its functions are tuned."""
    with loopwright.Client() as client:
        model = client.compile(net, cache=net.parent / CACHE)
        report = client.last_report
    assert report is not None
    return model, f"{len(report.hits)} of {len(report.functions)} functions tuned"


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    """Yield the one way: the number of threads is for `Client.compile` to choose."""
    yield "compile", lambda: _prepared(case)


def _prepared(case: Case) -> Prepared:
    model, note = compiled(Path(str(case.program()[0].model)))
    inputs, run = [as_tensor(array) for array in case.inputs], model.run

    def outputs() -> list[Array]:
        found = model(*case.inputs)
        return list(found) if isinstance(found, tuple) else [found]

    return Prepared(lambda: run(*inputs), outputs, note)
