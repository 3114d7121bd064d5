"""A ledger in memory, for tests of the loop and for benchmarks of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tuner.types import Certificate, MeasureCandidate, Outcome, Span, StopReason, Trial


class MemoryLedger:
    """See `tuner.ports.Ledger`.

    ``stop`` makes `cancelled` true, ``others`` is the answer of `elsewhere`, and ``trials`` has every task's lines in
    order.
    """

    def __init__(self, tasks: int) -> None:
        self.trials: list[dict[str, Trial]] = [{} for _ in range(tasks)]
        self.certificates: dict[int, Certificate] = {}
        self.failures: dict[int, str] = {}
        self.postponed: list[int] = []
        self.stopped: dict[int, StopReason] = {}
        self.ended: StopReason | None = None
        self.others: float | None = 0.0
        self.stop = False

    def history(self, task: int) -> Sequence[Trial]:
        return list(self.trials[task].values())

    def propose(self, task: int, candidates: Sequence[MeasureCandidate], searched: Span | None = None) -> list[Trial]:
        lines = self.trials[task]
        fresh = {c.hash: c for c in candidates if c.hash not in lines}.values()
        made = [Trial(f"{task}/{len(lines) + i}", candidate, None) for i, candidate in enumerate(fresh)]
        lines.update({trial.candidate.hash: trial for trial in made})
        return made

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        for trial, outcome in finished:
            lines = self.trials[int(trial.id.split("/")[0])]
            if lines[trial.candidate.hash].outcome is None:
                lines[trial.candidate.hash] = Trial(trial.id, trial.candidate, outcome)

    def note_kill(self, trial: Trial, attempt: Span) -> Trial:
        lines = self.trials[int(trial.id.split("/")[0])]
        lines[trial.candidate.hash] = noted = replace(trial, killed=(*trial.killed, attempt))
        return noted

    def elsewhere(self) -> float | None:
        return self.others

    def end(self, reason: StopReason) -> None:
        self.ended = reason

    def certify(self, task: int, certificate: Certificate, stopped: StopReason) -> None:
        self.certificates[task] = certificate
        self.stopped[task] = stopped

    def fail(self, task: int, message: str) -> None:
        self.failures[task] = message

    def postpone(self, task: int) -> None:
        self.postponed.append(task)

    def cancelled(self) -> bool:
        return self.stop
