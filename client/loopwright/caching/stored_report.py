"""The report of a compiled model as a cache keeps it: a summary, and the rest, which is read when it is wanted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property

from loopwright import schemas
from loopwright.applying.report import Agreement, AppliedFunction, ApplyReport, Prediction, Summary


def written(report: ApplyReport, answer: schemas.LookupAnswer | None) -> str:
    """Return a report as JSON, and what the service had answered, which has its bests."""
    functions = [
        {
            "name": each.name,
            "outcome": each.outcome,
            "workload_hash": each.best and each.best.workload_hash,
            "prediction": each.prediction and asdict(each.prediction),
            "source": each.source,
        }
        for each in report.functions
    ]
    fields = {
        "functions": functions,
        "agreement": report.agreement and asdict(report.agreement),
        "notes": report.notes,
        "answer": answer and answer.model_dump(mode="json"),
    }
    return json.dumps(fields)


class StoredReport:
    """A report that a process need not read: bests with their certificates take Pydantic, 0.2 s and 25 MiB."""

    def __init__(self, summary: Summary, content: bytes, notes: Sequence[str] = ()) -> None:
        """Take what `written` returned, and notes to add."""
        self._summary = summary
        self._content = content
        self._notes = notes

    def log(self) -> None:
        """Tell its summary."""
        text = "\n  ".join([self._summary.text, *self._notes])
        replace(self._summary, text=text).log()

    @cached_property
    def full(self) -> ApplyReport:
        """The report, with the bests as they were when the model was compiled."""
        from loopwright.results.best import Best

        fields = json.loads(self._content)
        answer, agreement = fields["answer"], fields["agreement"]
        hits = schemas.LookupAnswer.model_validate(answer, extra="ignore").hits if answer else []
        bests = {hit.workload_hash: Best.of(hit.best) for hit in hits}
        functions = (
            AppliedFunction(
                each["name"],
                each["outcome"],
                bests.get(each["workload_hash"]),
                each["prediction"] and Prediction(**each["prediction"]),
                each.get("source"),
            )
            for each in fields["functions"]
        )
        return ApplyReport(
            tuple(functions),
            agreement=agreement and Agreement(**agreement),
            notes=(*fields["notes"], *self._notes),
        )
