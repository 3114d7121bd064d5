"""The result of a check, for people and for CI systems: is a model slower than its reference?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright import schemas
from loopwright.errors import CheckFailed
from loopwright.jobs.job import Job
from loopwright.results.tables import GATE, titled
from loopwright.results.units import latency
from loopwright.session.transport import body

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finished job, and the result of its gate."""

    job: Job
    """The finished job."""
    result: schemas.GateResult
    """What the race showed."""

    @classmethod
    def of(cls, job: Job) -> CheckResult:
        """Return what came of a job's gate. Raises CheckFailed: the job did not succeed, or has none."""
        state = job.gate()
        if job.state not in ("succeeded", "partly"):
            reason = job.error or "no reason is given"
            raise CheckFailed(f"job {job.id} has {job.state}, so nothing was compared: {reason}")
        if state is None or state.result is None:
            raise CheckFailed(f"job {job.id} was submitted without a reference, so there is no comparison")
        return cls(job, state.result)

    @property
    def passed(self) -> bool:
        """Whether no regression was shown."""
        return self.result.verdict != "regression"

    def record(self, path: str | Path) -> Path:
        """Write the model's functions to a file, for later checks against them.

        Args:
            path: the file to write.

        Returns:
            The path.

        Raises:
            CheckFailed: a function has no certified best.
        """
        return write_reference(self.job, Path(path))

    @property
    def caption(self) -> str:
        """The verdict in a sentence."""
        found = self.result
        high = "…" if found.slowdown.high is None else f"{found.slowdown.high:.3f}"
        times = f"{latency(found.candidate_us)} against {latency(found.reference_us)}"
        measured = f"{found.rounds} rounds" if found.rounds else "the same programs, nothing was measured"
        interval = f" ({found.slowdown.low:.3f} to {high})" if found.rounds else ""
        return (
            f"{found.verdict}: one run of the model takes {found.slowdown.value:.3f}{interval} of the reference's "
            f"time, {times}; at most {1 + found.max_slowdown:g} is allowed; {measured}"
        )

    def markdown(self) -> str:
        """Return a summary for the page of a CI run."""
        head = " | ".join(column.title for column in GATE.columns)
        rule = " | ".join("---:" if column.is_number else "---" for column in GATE.columns)
        rows = [" | ".join(_escaped(cell) for cell in GATE.row(function)) for function in self.result.functions]
        lines = [f"**Loopwright: {_escaped(self.caption)}**", "", f"| {head} |", f"| {rule} |"]
        return "\n".join([*lines, *(f"| {row} |" for row in rows)]) + "\n"

    def junit(self) -> str:
        """JUnit XML: a test case for the whole model, and one for each function."""
        functions = self.result.functions
        failures = int(not self.passed) + sum(function.change == "failed" for function in functions)
        import xml.etree.ElementTree as xml

        suite = xml.Element(
            "testsuite", name=f"loopwright check {self.job.name}", tests=str(1 + len(functions)), failures=str(failures)
        )
        whole = xml.SubElement(suite, "testcase", classname="loopwright", name="the whole model")
        if not self.passed:
            xml.SubElement(whole, "failure", message=self.caption)
        xml.SubElement(whole, "system-out").text = self.caption
        for function in functions:
            case = xml.SubElement(suite, "testcase", classname="loopwright", name=titled(function))
            if function.change == "failed":
                xml.SubElement(case, "failure", message=function.message or "")
            xml.SubElement(case, "system-out").text = ", ".join(GATE.row(function)[1:])
        xml.indent(suite)
        return xml.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

    def _repr_html_(self) -> str:
        return GATE.html(self.result.functions, self.caption)

    def __rich__(self) -> Table:
        return GATE.rich(self.result.functions)


def write_reference(job: Job, path: Path) -> Path:
    """Write a finished job's functions as a reference. Raises CheckFailed: one of them has no certified best."""
    if job.state != "succeeded" or any(task.record_id is None for task in job.tasks):
        raise CheckFailed(f"job {job.id} is {job.state}; a reference needs a certified best of each function")
    functions = [
        {
            "name": task.name,
            "workload_hash": task.workload_hash,
            "weight": task.weight,
            "record_id": task.record_id,
            "source": task.source,
        }
        for task in job.tasks
    ]
    path.write_text(json.dumps({"job": job.id, "name": job.name, "functions": functions}, indent=2), encoding="utf-8")
    return path


def gate_against(against: Any, max_slowdown: float) -> schemas.Gate:
    """Return the gate for a reference: a job, its id or name, or a file that `write_reference` wrote.

    Raises:
        ValueError: the file contains something else, or ``max_slowdown`` is out of bounds.
    """
    if isinstance(against, Job):
        reference: Any = against.id
    elif isinstance(against, str | os.PathLike) and Path(against).is_file():
        reference = read_reference(Path(against))
    else:
        reference = os.fspath(against)
    return schemas.Gate.model_validate(body(schemas.Gate, against=reference, max_slowdown=max_slowdown))


def read_reference(path: Path) -> list[Any]:
    """Return the functions that `write_reference` wrote. Raises ValueError: the file holds something else."""
    try:
        functions = json.loads(path.read_text(encoding="utf-8"))["functions"]
    except (KeyError, TypeError, ValueError):
        functions = None
    if not isinstance(functions, list) or not functions:
        raise ValueError(f"{path} contains no reference; write one with: loopwright check MODEL --record {path}")
    return functions


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
