"""Calls that time a model beside other engines."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from loopwright import schemas
from loopwright.calls.connection import API
from loopwright.calls.models import ModelCalls
from loopwright.extras import require_tvm
from loopwright.jobs.job import Job
from loopwright.jobs.targets import on_wire
from loopwright.model import ModelOptions, as_model
from loopwright.session import config
from loopwright.session.transport import parse

if TYPE_CHECKING:
    from loopwright.results.comparison import Comparison


class ComparisonCalls(ModelCalls):
    """Comparisons with other engines."""

    def compare(
        self,
        model: Any,
        against: Sequence[str] = ("torch", "compile", "ort", "openvino"),
        target: Any = "auto",
        *,
        rounds: int = 8,
        processes: int = 2,
        job: Job | str | None = None,
        progress: bool = True,
        **options: Unpack[ModelOptions],
    ) -> Comparison:
        """Time a model, as `compile` builds it, beside other engines, on this machine (Linux, a CPU).

        Each engine runs in a process of its own, in the model's precision, with one thread for each core. It compiles
        the model with each of its settings. Its outputs are compared with those of PyTorch, or of the unscheduled
        program if the model is not PyTorch's. The fastest setting is timed, in turn with the other engines.

        Args:
            model: as for `submit`. Its inputs are the example inputs, from which symbolic extents of a PyTorch program
                have their values. A model without example inputs gets random inputs.
            against: ``torch`` (eager), ``compile`` (Inductor), ``ort`` (ONNX Runtime), ``openvino``, ``tvm`` (the same
                program without tuned schedules). The result names engines that are not installed, and how to install
                them.
            target: the target to compile for, which is this machine's CPU.
            rounds: samples of each process.
            processes: processes of each engine, one after another.
            job: a job to store the result with, for its page.
            progress: whether to print each step on standard error.
            options: the options of a plain model, as they were submitted.

        Returns:
            The time, error and setting of each engine. Latencies are in microseconds.

        Raises:
            ValueError: an engine is unknown, or the model lacks what a call needs; else as `compile`.
        """
        source = as_model(model, **options)
        require_tvm()
        from loopwright.comparing import compare, writing
        from loopwright.jobs.progress import telling

        engines = compare.engines_named(against)
        amount = compare.Rounds(processes, rounds)
        with tempfile.TemporaryDirectory(prefix="loopwright-compare-") as scratch, telling(progress) as say:
            say("the model is written to files")
            with_onnx = not {"ort", "openvino"}.isdisjoint(against)
            files, reference = writing.write(Path(scratch), source, on_wire(target), with_onnx=with_onnx)
            if files.form != "pt2":
                files = writing.complete(files, self.look_up(files.model, target), source)
            environment = config.environment(self._transport.endpoint)
            found = compare.compare(files, engines, environment, amount, reference=reference, say=say)
        if job is not None:
            self.store_comparison(found, job)
        return found

    def store_comparison(self, comparison: schemas.Comparison, job: Job | str) -> schemas.StoredComparison:
        """Store a comparison with a job, whose page then shows it, in place of an earlier comparison.

        Args:
            comparison: the result of `compare`.
            job: the job, or its id.

        Raises:
            Unauthorized: the job is another user's.
        """
        job_id = job if isinstance(job, str) else job.id
        path = f"{API}/jobs/{quote(job_id, safe='')}/comparison"
        sent = comparison.model_dump(mode="json")
        return parse(schemas.StoredComparison, self._transport.request("PUT", path, json=sent, repeatable=True))
