"""The model as Loopwright prepares it, with TVM's default schedules: what is there before anything is tuned."""

from __future__ import annotations

from collections.abc import Iterator

import loopwright
from loopwright.comparing.case import Case
from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.comparing.engines.tuned import on_virtual_machine


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    yield "default", lambda: _prepared(case)


def _prepared(case: Case) -> Prepared:
    with loopwright.Client() as client:
        model, target = case.program()
        looked_up = client.look_up(model, target)
    from loopwright.applying import apply as applying

    return on_virtual_machine(applying.build(looked_up.module, looked_up.target), case, "no function tuned")
