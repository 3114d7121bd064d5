"""A search that goes wrong, in a child: what it does to a task is the workload's name."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator

import workers.child.search
from tuner.search.request import TuneRequest
from workers.child.search_messages import Question, Read
from workers.entry import entry


@entry
def serve(request: TuneRequest, questions: Iterator[Question]) -> Iterator[object]:
    faults: dict[int, str] = {}

    def watched() -> Iterator[Question]:
        for question in questions:
            if isinstance(question, Read):
                faults[question.task] = question.spec.workload.name
            method, _, fault = faults[question.task].partition(" ")
            if method == type(question).__name__.lower():
                _strike(fault)
            yield question

    answers = workers.child.search.serve(request, watched())
    for answer in answers:
        yield "a lie" if "lie" in [name.partition(" ")[2] for name in faults.values()] else answer


def _strike(fault: str) -> None:
    if fault == "spin":
        while True:
            pass
    if fault == "memory":
        data = []
        while True:
            data.append(bytearray(2**24))
    if fault == "crash":
        ctypes.string_at(0)
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "exit":
        os._exit(0)
    if fault == "raise":
        raise RuntimeError("TVM says no")
