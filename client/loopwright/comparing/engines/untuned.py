"""The model as Loopwright prepares it, with TVM's default schedules: what is there before anything is tuned."""

from __future__ import annotations

from collections.abc import Iterator

import loopwright
from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.comparing.engines.tuned import on_virtual_machine
from loopwright.comparing.given import Given


def variants(given: Given, threads: int) -> Iterator[tuple[str, Prepare]]:
    yield "default", lambda: _prepared(given)


def _prepared(given: Given) -> Prepared:
    with loopwright.Client() as client:
        model, target = given.program()
        looked_up = client.look_up(model, target)
    from loopwright.applying import apply as applying

    return on_virtual_machine(applying.build(looked_up.module, looked_up.target), given, "no function tuned")
