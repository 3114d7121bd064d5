"""The search of a job's tasks. Runs in one fork of a warm child for the whole job, and answers the loop's questions."""

from __future__ import annotations

from collections.abc import Iterator

from tuner.codec import Base64
from tuner.cost_model import model
from tuner.cost_model.features import from_bytes
from tuner.ports import nothing_meanwhile
from tuner.search.request import TuneRequest
from tuner.search.searcher import Searcher
from tuner.types import MeasureCandidate
from workers.child.search_messages import Open, Propose, Question, Read, StoredSample
from workers.entry import entry


@entry
def serve(
    request: TuneRequest, questions: Iterator[Question]
) -> Iterator[tuple[bool, ...] | bool | list[MeasureCandidate]]:
    """Answer each question by a method of `tuner.search.searcher.Searcher`."""
    searcher = Searcher(request)
    for question in questions:
        match question:
            case Read():
                yield searcher.read(question.task, question.spec, nothing_meanwhile)
            case Open():
                yield searcher.open(question.task, question.history, nothing_meanwhile)
            case Propose():
                for number, trial in question.observed:
                    if trial.outcome is not None:
                        searcher.observe(number, trial.candidate, trial.outcome)
                yield searcher.propose(question.task, question.count, nothing_meanwhile)


@entry
def choose(request: TuneRequest) -> Iterator[MeasureCandidate | None]:
    """Yield the answer of `tuner.search.searcher.Searcher.choose` for the only task of a request."""
    searcher = Searcher(request)
    [spec] = request.tasks
    searcher.read(0, spec, nothing_meanwhile)
    yield searcher.choose(0, nothing_meanwhile)


@entry
def train(samples: list[StoredSample]) -> Iterator[Base64]:
    """Yield a base model."""
    read = [model.Sample(group, from_bytes(features), latency) for group, features, latency in samples]
    yield model.train_base(read, seed=0)
