"""The search of a job's tasks. Runs in one fork of a warm child for the whole job, and answers the loop's questions."""

from __future__ import annotations

from collections.abc import Iterator

from tuner.cost_model.features import from_bytes
from tuner.cost_model.model import Sample, train_base
from tuner.ports import nothing_meanwhile
from tuner.search.searcher import Searcher
from workers.messages import Json
from workers.search_messages import (
    candidate_to_json,
    request_from_json,
    samples_from_json,
    spec_from_json,
    trial_from_json,
)


def serve(request: Json, questions: Iterator[Json]) -> Iterator[object]:
    """Answer each question by the method of `tuner.search.searcher.Searcher` that it names; the entry in a child."""
    searcher = Searcher(request_from_json(request))
    for question in questions:
        task = question["task"]
        match question["method"]:
            case "read":
                yield list(searcher.read(task, spec_from_json(question["spec"]), nothing_meanwhile))
            case "open":
                history = [trial_from_json(trial) for trial in question["history"]]
                yield searcher.open(task, history, nothing_meanwhile)
            case "propose":
                for number, fields in question["observed"]:
                    trial = trial_from_json(fields)
                    if trial.outcome is not None:
                        searcher.observe(number, trial.candidate, trial.outcome)
                proposed = searcher.propose(task, question["count"], nothing_meanwhile)
                yield [candidate_to_json(candidate) for candidate in proposed]


def train(samples: list[list[object]]) -> Iterator[str]:
    """Yield a base model, as hexadecimal digits, from what `samples_to_json` made of samples."""
    read = [Sample(group, from_bytes(features), latency) for group, features, latency in samples_from_json(samples)]
    yield train_base(read, seed=0).hex()
