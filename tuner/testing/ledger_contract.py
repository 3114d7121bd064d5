"""The contract of `tuner.ports.Ledger`. Subclass it in a test file and give the fixtures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from loopwright.codegen.kinds import FailureKind, Lane, Origin, SandboxLevel, Stage, ThrottleReason
from tuner.errors import LeaseLost
from tuner.ports import Ledger
from tuner.types import (
    BASELINE,
    Certificate,
    DeviceState,
    Failure,
    MeasureCandidate,
    Measured,
    Outcome,
    Span,
    StopReason,
)

Reopen = Callable[[Ledger], Ledger]


def candidates(count: int, first: int = 0) -> list[MeasureCandidate]:
    """Different candidates; the ledger does not look into their traces."""
    return [MeasureCandidate(f"[[],[[{i}]]]", Origin.RANDOM, predicted=float(i)) for i in range(first, first + count)]


def certificate(candidate_hash: str) -> Certificate:
    return Certificate(
        candidate_hash=candidate_hash,
        inputs="random",
        rtol=1e-4,
        atol=1e-4,
        max_abs_error=1e-6,
        max_rel_error=1e-7,
        best_run_secs=(1e-3, 2e-3, 1.5e-3),
        baseline_run_secs=(1e-2, 2e-2, 1.5e-2),
        contenders=2,
        rejected={"f" * 32: Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 1 differs")},
        sandbox=SandboxLevel.LANDLOCK,
        system="Linux 6.1",
    )


SPANS = (Span(Lane.BUILD, "builder", 100.0, 101.0), Span(Lane.MEASURE, "worker", 101.0, 101.5))
MEASURED = Measured((1e-3, 3e-3, 2e-3), "worker", SPANS)


class LedgerContract:
    """Fixtures: ``ledger``, fresh, of a job with two tasks that this run owns; ``reopen``, which gives the ledger of a
    later run of the same job."""

    def test_it_begins_empty(self, ledger: Ledger) -> None:
        assert list(ledger.history(0)) == list(ledger.history(1)) == []
        assert ledger.cancelled() is False

    def test_what_is_proposed_is_kept_in_order_and_unfinished(self, ledger: Ledger, reopen: Reopen) -> None:
        wanted = [BASELINE, *candidates(5), MeasureCandidate("[[],[]]", Origin.MUTATION, 0.5, BASELINE.hash)]
        trials = ledger.propose(0, wanted[:3]) + ledger.propose(0, wanted[3:])
        assert [trial.candidate for trial in trials] == wanted
        assert {trial.outcome for trial in trials} == {None}
        assert len({trial.id for trial in trials}) == len(wanted)
        assert list(reopen(ledger).history(0)) == trials
        assert list(reopen(ledger).history(1)) == []

    def test_a_candidate_that_the_task_holds_is_left_out(self, ledger: Ledger) -> None:
        first, second, third = candidates(3)
        ledger.propose(0, [first, second])
        assert [trial.candidate for trial in ledger.propose(0, [second, third, first])] == [third]
        assert ledger.propose(0, [first, second, third]) == []
        assert [trial.candidate for trial in ledger.history(0)] == [first, second, third]

    def test_a_candidate_is_kept_once_though_proposed_twice_at_once(self, ledger: Ledger) -> None:
        (one,) = candidates(1)
        assert len(ledger.propose(0, [one, one])) == len(ledger.history(0)) == 1

    def test_the_same_trace_from_elsewhere_is_the_same_candidate(self, ledger: Ledger) -> None:
        (one,) = candidates(1)
        ledger.propose(0, [one])
        assert ledger.propose(0, [MeasureCandidate(one.trace_json, Origin.MUTATION, None, BASELINE.hash)]) == []

    def test_tasks_do_not_share_candidates(self, ledger: Ledger) -> None:
        one, other = ledger.propose(0, [BASELINE]), ledger.propose(1, [BASELINE])
        assert one[0].id != other[0].id
        ledger.finish((one[0], MEASURED))
        assert [trial.outcome for trial in ledger.history(1)] == [None]

    @pytest.mark.parametrize(
        "outcome",
        [
            MEASURED,
            Measured((0.1 + 0.2,), "w" * 60, sandbox=SandboxLevel.NAMESPACES),
            Measured((0.1,), "worker", device_state=DeviceState(1980, 2619, 61, 412, tuple(ThrottleReason))),
            Measured((0.1,), "worker", device_state=DeviceState(celsius=0, throttled=())),
            *(Failure(Stage.RUN, kind, f"why: {kind} \n\t'\"\\ é", "worker") for kind in FailureKind),
            *(Failure(stage, FailureKind.CRASH, "it crashed", None) for stage in Stage),
        ],
        ids=str,
    )
    def test_an_outcome_comes_back_as_it_was(self, ledger: Ledger, reopen: Reopen, outcome: Outcome) -> None:
        trials = ledger.propose(0, candidates(3))
        ledger.finish((trials[1], outcome))
        assert [trial.outcome for trial in ledger.history(0)] == [None, outcome, None]
        assert [trial.outcome for trial in reopen(ledger).history(0)] == [None, outcome, None]

    def test_the_times_of_an_outcome_come_back(self, ledger: Ledger, reopen: Reopen) -> None:
        proposing = Span(Lane.PROPOSE, "search", 99.0, 100.0)
        measured, failed = ledger.propose(0, candidates(2), proposing)
        ledger.finish((measured, MEASURED), (failed, Failure(Stage.RUN, FailureKind.CRASH, "", "worker", SPANS)))
        for trial in reopen(ledger).history(0):
            assert trial.outcome is not None
            assert trial.outcome.spans == SPANS

    def test_an_attempt_that_was_killed_is_known_to_a_later_run(self, ledger: Ledger, reopen: Reopen) -> None:
        proposing = Span(Lane.PROPOSE, "search", 99.0, 100.0)
        killed, other = ledger.propose(0, candidates(2), proposing)
        assert ledger.note_kill(killed, SPANS[1]).killed == SPANS[1:]
        later = reopen(ledger)
        noted, untouched = later.history(0)
        assert (noted.id, noted.outcome, noted.killed) == (killed.id, None, SPANS[1:])
        assert untouched == other
        twice = later.note_kill(noted, SPANS[0])
        assert twice.killed == (SPANS[1], SPANS[0])
        later.finish((twice, MEASURED))
        assert [trial.outcome for trial in later.history(0)] == [MEASURED, None]

    def test_the_first_outcome_stands(self, ledger: Ledger) -> None:
        (trial,) = ledger.propose(0, candidates(1))
        ledger.finish((trial, MEASURED))
        with suppress(LeaseLost):
            ledger.finish((trial, Failure(Stage.RUN, FailureKind.CRASH, "late", "worker")))
        assert [known.outcome for known in ledger.history(0)] == [MEASURED]

    def test_a_later_run_goes_on(self, ledger: Ledger, reopen: Reopen) -> None:
        trials = ledger.propose(0, candidates(2))
        ledger.finish((trials[0], MEASURED))
        later = reopen(ledger)
        unfinished = [trial for trial in later.history(0) if trial.outcome is None]
        assert unfinished == [trials[1]]
        later.finish((unfinished[0], MEASURED))
        assert [trial.candidate for trial in later.propose(0, candidates(3))] == candidates(1, first=2)
        assert [trial.id for trial in later.history(0)][:2] == [trial.id for trial in trials]

    def test_the_search_takes_no_time_elsewhere_if_it_tunes_all_tasks(self, ledger: Ledger) -> None:
        assert ledger.elsewhere() == 0.0

    @pytest.mark.parametrize("reason", list(StopReason))
    def test_the_end_of_the_search_may_be_written_again(self, ledger: Ledger, reason: StopReason) -> None:
        ledger.end(reason)
        ledger.end(reason)

    @pytest.mark.parametrize("stopped", list(StopReason))
    def test_a_task_is_certified(self, ledger: Ledger, stopped: StopReason) -> None:
        baseline, best = ledger.propose(0, [BASELINE, *candidates(1)])
        ledger.finish((baseline, MEASURED))
        ledger.finish((best, MEASURED))
        ledger.certify(0, certificate(best.candidate.hash), stopped)

    def test_a_task_is_certified_with_its_baseline(self, ledger: Ledger) -> None:
        (baseline,) = ledger.propose(0, [BASELINE])
        ledger.finish((baseline, MEASURED))
        ledger.certify(0, certificate(BASELINE.hash), StopReason.EXHAUSTED)

    def test_one_task_fails_while_the_other_goes_on(self, ledger: Ledger) -> None:
        ledger.fail(0, "the unscheduled function failed")
        (trial,) = ledger.propose(1, [BASELINE])
        ledger.finish((trial, MEASURED))
        ledger.certify(1, certificate(BASELINE.hash), StopReason.BUDGET)
