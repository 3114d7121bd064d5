"""The way into a Loopwright service from Python."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload
from urllib.parse import quote

from loopwright import archive, config, frontends, schemas
from loopwright.access import Access
from loopwright.best import Best
from loopwright.check_result import CheckResult, read_reference
from loopwright.errors import NotFound
from loopwright.extras import require_tvm
from loopwright.frontends import stochastic
from loopwright.importing import import_pair
from loopwright.job import Job
from loopwright.job_group import JobGroup
from loopwright.model import Model, ModelOptions, OtherOptions, Shapes, as_model
from loopwright.program import Program
from loopwright.progress import telling
from loopwright.report import ApplyReport
from loopwright.shape_plan import BUCKET_PRICE, MAX_BUCKETS, Portfolio, is_portfolio
from loopwright.submit_options import SubmitOptions
from loopwright.tables import BESTS, RECORDS, Listing
from loopwright.targets import as_text, on_wire
from loopwright.transport import Transport, body, parse
from loopwright.tuning_logs import NOT_IMPORTED, logged_tasks
from loopwright.webhooks import Webhooks

if TYPE_CHECKING:
    from loopwright.comparison import Comparison
    from loopwright.lookup import LookedUp

API = "/api/v1"
PAGE_SIZE = 200
_WORKLOAD_HASH = re.compile(r"[0-9a-f]{32}")


class Client:
    """A connection to a service; closes as a context manager or by `close`. Thread-safe but for ``last_report`` and
    ``last_plan``.

    Each call may raise `CouldNotReach` (no answer, after retries where repeating does no harm) and a `ServiceError`
    (the service refused the request; the subclass says why). A ``target`` is ``"auto"`` (what the service would tune
    for), a TVM target string, tag or JSON text, a dictionary, or a ``tvm.target.Target``.
    """

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = 30.0) -> None:
        """Find the service; the first request connects.

        Args:
            url: URL of the service; by default ``LOOPWRIGHT_URL``, else the saved login, else the service on this
                machine.
            token: token for the service; by default ``LOOPWRIGHT_TOKEN``, else that of the saved login or of the
                service on this machine.
            timeout: seconds, for connecting and for each wait on an answer.

        Raises:
            ValueError: the URL does not begin with ``http://`` or ``https://``.
        """
        self._transport = Transport(config.resolve(url, token), timeout)
        self.access: Access = Access(self._transport)
        """Users, tokens, and what is used."""
        self.webhooks: Webhooks = Webhooks(self._transport)
        """Addresses that the service tells of events."""
        self.last_report: ApplyReport | None = None
        """What hit and what missed in the last `apply` or `compile`."""
        self.last_plan: Portfolio | None = None
        """The buckets of the last `submit` or `compile` with ranges of shapes."""

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._transport.endpoint.url

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @overload
    def submit(
        self, model: Any, target: Any = "auto", *, targets: None = None, **options: Unpack[SubmitOptions]
    ) -> Job: ...

    @overload
    def submit(self, model: Any, *, targets: Sequence[Any], **options: Unpack[SubmitOptions]) -> JobGroup: ...

    def submit(
        self,
        model: Any,
        target: Any = "auto",
        *,
        targets: Sequence[Any] | None = None,
        max_trials: int = 64,
        max_seconds: float | None = None,
        max_device_seconds: float | None = None,
        target_latency_us: float | None = None,
        until: schemas.Until | None = None,
        space: stochastic.Space | None = None,
        seed: int = 0,
        name: str | None = None,
        priority: int = 0,
        force: bool = False,
        visibility: schemas.Visibility = "team",
        gate: schemas.Gate | None = None,
        labels: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> Job | JobGroup:
        """Submit a model for tuning; return at once with the queued job, or with a group of jobs for ``targets``.

        Args:
            model: a `Model`, or a plain model with the options of `Model` as keyword arguments.
            target: what to tune for.
            targets: in place of ``target``, up to 8 of them. Each becomes a job, with the whole budget; all jobs are
                stored, or none.
            max_trials: candidates to measure at most, all tasks together.
            max_seconds: seconds to search at most.
            max_device_seconds: seconds to use measuring slots at most; closing races are not counted.
            target_latency_us: stop when one run of the whole model takes no longer, by the sum of its functions
                (`Job.model`).
            until: ``"plateau"`` stops when the next minute is expected to gain less than 1 %, and each function had its
                first batch of trials.
            space: None (the built-in space), a function ``f(sch)`` that makes stochastic choices (run here; only its
                trace is sent), a trace, or a list of traces ``[instructions, decisions]``.
            seed: seed of the search.
            name: what to call the job; by default a name after the model.
            priority: -100 to 100; higher goes first. Only admins may give one over 0.
            force: search even where the database already knows the answer.
            visibility: ``"private"`` hides the job from all but its owner and admins, and its workloads unless others
                submitted them, too.
            gate: what the model is compared with once it is tuned; `check` makes one.
            labels: ``{"rack": "a"}``: only workers that have all of these labels measure it.
            idempotency_key: submitting again with the same key returns the same job; made up here when None, so that
                a retry after a lost answer submits once.
            options: those of a plain model.

        Raises:
            TypeError: the model or the space is of a kind that is not accepted, an option of the model is missing, not
                for it, or given beside a `Model`, or ``targets`` is a string.
            UnsupportedModel: the model cannot be turned into a module; the message names the part.
            ValueError: a budget, priority or name is out of bounds, or both ``target`` and ``targets`` are given.
            InvalidRequest: the service cannot tune this, no worker runs code for a target, or two targets are the
                same; the detail says what to change.
        """
        if isinstance(targets, str):
            raise TypeError(f"targets={targets!r} should be a list; give a single one as target")
        source = as_model(model, **options)
        shapes = self.plan_shapes(source).shapes if is_portfolio(source.shapes) else source.shapes
        request = body(
            schemas.SubmitJob,
            module=frontends.to_payload(source),
            target=on_wire(target),
            targets=None if targets is None else [on_wire(each) for each in targets],
            name=name,
            seed=seed,
            priority=priority,
            budget={
                "max_trials": max_trials,
                "max_seconds": max_seconds,
                "max_device_seconds": max_device_seconds,
                "target_latency_us": target_latency_us,
                "until": until,
            },
            space=stochastic.to_traces(space, source),
            shapes=shapes,
            force=force,
            exact_math=source.exact_math,
            math=source.math,
            visibility=visibility,
            gate=None if gate is None else gate.model_dump(mode="json"),
            labels=labels or {},
        )
        response = self._transport.request(
            "POST",
            f"{API}/jobs",
            json=request,
            headers={"Idempotency-Key": idempotency_key or uuid.uuid4().hex},
            repeatable=True,
        )
        if targets is not None:
            return JobGroup(self._transport, parse(schemas.JobGroup, response), targets)
        return Job(self._transport, parse(schemas.Job, response))

    def check(
        self,
        model: Any,
        against: Any,
        target: Any = "auto",
        *,
        max_slowdown: float = 0.03,
        progress: bool = True,
        **submission: Any,
    ) -> CheckResult:
        """Race a model with a reference, for continuous integration.

        The model is submitted (functions that are known are answered from the database, new ones are tuned), and then
        raced on the fleet with the reference, until it is clear whether one run of it takes longer by more than
        ``max_slowdown``.

        Args:
            model: as for `submit`.
            against: a `Job` or its id; the name of one, of which the newest that succeeded counts; or the path of a
                file that `CheckResult.record` wrote.
            target: what to tune and race for; that of the reference.
            max_slowdown: a share, 0.03 for three percent.
            progress: draw progress bars on standard error.
            submission: further arguments of `submit`, such as ``max_trials``, ``shapes`` and ``example_inputs``; not
                ``targets``.

        Returns:
            The finished job and the result of the race; ``passed`` says whether no regression was shown.

        Raises:
            CheckFailed: the job did not succeed; its message says why.
            InvalidRequest: there is no such reference, or it is of another device class.
        """
        gate = body(schemas.Gate, against=_reference(against), max_slowdown=max_slowdown)
        job = self.submit(model, target, targets=None, gate=schemas.Gate.model_validate(gate), **submission)
        job.wait(progress=progress)
        return CheckResult.of(job)

    def job(self, job_id: str) -> Job:
        """Return a job by its id.

        Args:
            job_id: ``Job.id``.

        Raises:
            NotFound: there is no such job.
        """
        return Job(self._transport, self._transport.get(schemas.Job, f"{API}/jobs/{quote(job_id, safe='')}"))

    def jobs(self, owner: str | None = None, group: str | None = None) -> Iterator[Job]:
        """Yield jobs, the newest first; those of one group in the order of its targets.

        Args:
            owner: only jobs of this user.
            group: only jobs of this group.
        """
        for info in self._transport.pages(schemas.Job, f"{API}/jobs", owner=owner, group=group, page_size=PAGE_SIZE):
            yield Job(self._transport, info)

    def job_group(self, group_id: str) -> JobGroup:
        """Return the jobs of a submission for several targets.

        Args:
            group_id: ``JobGroup.id``.

        Raises:
            NotFound: there is no such group.
        """
        jobs = [job.info for job in self.jobs(group=group_id)]
        if not jobs:
            raise NotFound(schemas.Problem(title="Not found", status=404, detail=f"There is no group {group_id!r}."))
        return JobGroup(self._transport, schemas.JobGroup(id=group_id, jobs=jobs))

    def best(
        self,
        model_or_workload_hash: Any,
        target: Any = "auto",
        **options: Unpack[ModelOptions],
    ) -> Best | None:
        """Return the certified best of a workload; None if none is known.

        Args:
            model_or_workload_hash: a workload's hash; or a model with one PrimFunc, as for `submit`.
            target: what to look up the best for.
            options: those of a plain model, as they were submitted.

        Raises:
            ValueError: the model has no or several functions after lowering; see `apply` for those.
        """
        model = model_or_workload_hash
        if isinstance(model, str) and _WORKLOAD_HASH.fullmatch(model):
            try:
                return self._transport.get(Best, f"{API}/workloads/{model}/best", target=as_text(target))
            except NotFound:
                return None
        looked_up = self.look_up(model, target, **options)
        from loopwright.codegen.functions import used_prim_funcs

        funcs = used_prim_funcs(looked_up.module)
        if len(funcs) != 1:
            raise ValueError(f"best() takes one function, and this model has {len(funcs)}; use bests() or apply()")
        return looked_up.bests.get(str(funcs[0][0].name_hint))

    def bests(self, target: Any = "auto") -> Listing[Best]:
        """Return every certified best for a target, the newest first.

        Args:
            target: what to list bests for.

        Returns:
            A list that is read page by page, and shown as a table in terminals and notebooks.
        """
        query = {"target": as_text(target), "page_size": PAGE_SIZE}
        return Listing(self._transport.pages(Best, f"{API}/bests", **query), BESTS)

    def look_up(
        self,
        model: Any,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        **options: Unpack[ModelOptions],
    ) -> LookedUp:
        """Lower a model, and look up its functions in one request. `compile` then puts the bests in.

        Args:
            model: as for `submit`.
            target: what to look up bests for.
            params: values of parameters of ``main``, by name (Relax only).
            options: those of a plain model, as they were submitted.

        Returns:
            The lowered module, its target, and the bests by name of function.
        """
        require_tvm()
        from loopwright.lookup import look_up

        source = as_model(model, **options)
        return look_up(_program(source, source.shape), self._ask(target), _tvm_target(target), params)

    def apply(
        self,
        mod: Any,
        target: Any = "auto",
        **options: Unpack[ModelOptions],
    ) -> Any:
        """Return a copy of a module with the best schedules applied, as an IRModule.

        A Relax module comes back legalised and fused. ``last_report`` says of each function whether it was tuned, is
        best as it is, or missed; misses are also logged as a warning.

        Args:
            mod: the model, as for `submit`.
            target: what to look up bests for.
            options: those of a plain model, as they were submitted.

        Raises:
            UnsupportedModel: the model cannot be turned into a module; the message says what of it.
            TvmUnavailable: TVM is not installed.
        """
        applied, _ = self._apply(self.look_up(mod, target, **options))
        return applied

    def plan_shapes(
        self,
        model: Any,
        shapes: Shapes | None = None,
        *,
        max_buckets: int = MAX_BUCKETS,
        bucket_price: float = BUCKET_PRICE,
        **options: Unpack[OtherOptions],
    ) -> Portfolio:
        """Choose the buckets of a model that is called with many extents; asks the service nothing.

        `submit` and `compile` take the portfolio as ``shapes``, or choose it themselves. Whether calls can be padded
        follows from the model: each sample of its results must be computed from the same sample of its inputs alone.

        Args:
            model: as for `submit`.
            shapes: the extents and their weights, as `loopwright.plan_shapes` takes them; None: those of the `Model`.
            max_buckets: buckets at most.
            bucket_price: what one more bucket must save at least, as a fraction of the time without padding.
            options: those of a plain model, as for `submit`.

        Raises:
            ValueError: ``shapes`` does not give many values of one extent.
            InvalidModule: the model has no Relax function with the symbolic extent.
        """
        require_tvm()
        from loopwright import shape_dispatch

        source = as_model(model, **options) if shapes is None else as_model(model, shapes=shapes, **options)
        program = _program(source, {})
        self.last_plan = shape_dispatch.plan(
            program, source.portfolio, max_buckets=max_buckets, bucket_price=bucket_price
        )
        return self.last_plan

    def compile(
        self,
        mod: Any,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        **options: Unpack[ModelOptions],
    ) -> Any:
        """Build a module with the best schedules in it.

        Functions that missed are built as TVM would by default; ``last_report`` tells which. What was built for another
        architecture than this machine's does not run here: `loopwright.export_library` writes a library for it.

        With many values of an extent in ``shapes``, a call may have any extent: the module has a tuned variant for each
        bucket that the certificates show to be faster, and the untuned functions for all other calls.

        Args:
            mod: the model, as for `submit`.
            target: what to build for.
            params: values that are bound to ``main`` by name (Relax only). The weights that a model brought with it are
                bound again.
            options: those of a plain model, as they were submitted.

        Returns:
            A ``relax.VMExecutable`` for ``relax.VirtualMachine``, or a ``tvm.runtime.Module`` for a module without
            Relax.

        Raises:
            UnsupportedModel: the model cannot be turned into a module; the message says what of it.
            TvmUnavailable: TVM is not installed.
        """
        source = as_model(mod, **options)
        if is_portfolio(source.shapes):
            return self._compile_portfolio(source, target, params)
        applied, built_for = self._apply(self.look_up(source, target, params))
        from loopwright import applying

        return applying.build(applied, built_for)

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
        the model with each of its settings, its outputs are compared with the reference's (PyTorch's, or those of the
        unscheduled program for a model that is not PyTorch's), and the fastest setting is timed, in turn with the
        other engines.

        Args:
            model: as for `submit`. Its inputs are the example inputs, which also give symbolic extents of a PyTorch
                program their values; without them, they are drawn.
            against: ``torch`` (eager), ``compile`` (Inductor), ``ort`` (ONNX Runtime), ``openvino``, ``tvm`` (the same
                program without tuned schedules). One that is not installed is named in the result, with how to install
                it.
            target: what to compile for: this machine's CPU.
            rounds: samples of each process.
            processes: of each engine, one after another.
            job: a job to store the result with, for its page.
            progress: tell on standard error what is done.
            options: those of a plain model, as they were submitted.

        Returns:
            The time, error and setting of each engine. Latencies are in microseconds.

        Raises:
            ValueError: an engine is unknown, or the model cannot be called as it is; else as `compile`.
        """
        source = as_model(model, **options)
        require_tvm()
        from loopwright.comparing import compare, writing

        engines = compare.engines_named(against)
        amount = compare.Rounds(processes, rounds)
        with tempfile.TemporaryDirectory(prefix="loopwright-compare-") as scratch, telling(progress) as say:
            say("the model is written to files")
            with_onnx = not {"ort", "openvino"}.isdisjoint(against)
            files, reference = writing.write(Path(scratch), source, on_wire(target), with_onnx=with_onnx)
            if files.form != "pt2":
                files = writing.complete(files, self.look_up(files.model, target))
            found = compare.compare(files, engines, self._environment(), amount, reference=reference, say=say)
        if job is not None:
            self.store_comparison(found, job)
        return found

    def store_comparison(self, comparison: schemas.Comparison, job: Job | str) -> schemas.StoredComparison:
        """Store a comparison with a job, in place of an earlier one; the job's page shows it.

        Args:
            comparison: what `compare` returned.
            job: the job, or its id.

        Raises:
            Unauthorized: the job is another user's.
        """
        job_id = job if isinstance(job, str) else job.id
        path = f"{API}/jobs/{quote(job_id, safe='')}/comparison"
        sent = comparison.model_dump(mode="json")
        return parse(schemas.StoredComparison, self._transport.request("PUT", path, json=sent, repeatable=True))

    def package(
        self,
        model: Any,
        directory: str | Path,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> Path:
        """Write a model, as `compile` builds it for CPUs, to a folder that runs without Loopwright.

        The folder has the library with the weights, TVM's runtime (no compiler), loaders in Python and C++, a manifest
        (functions, digests, target, certificates, versions, licences), and programs and an example with which
        `loopwright.verify` replays the certificates where the folder is. `loopwright.load` runs it. Writing it needs
        a C++ compiler. Functions that missed are logged.

        Args:
            model: as for `submit`.
            directory: the folder to write, which is made; it is empty if it exists.
            target: what to build for: a CPU.
            params: values that are bound to ``main`` by name.
            name: name of the model in the manifest; by default that of the file or class.
            options: those of a plain model, as they were submitted.

        Returns:
            The folder.

        Raises:
            ValueError: the model has no Relax function ``main``, or an input without a fixed shape.
            UnsupportedModel: the target is no CPU, or the model cannot be turned into a module.
            FileExistsError: the folder is not empty.
        """
        source = as_model(model, **options)
        require_tvm()
        from loopwright.comparing import writing
        from loopwright.packaging import package

        with tempfile.TemporaryDirectory(prefix="loopwright-package-") as scratch:
            files, reference = writing.write(Path(scratch), source, on_wire(target), with_onnx=False)
            looked_up = self.look_up(files.model, target, params)
            if files.form != "pt2":
                files = writing.complete(files, looked_up)
            plain = source.model
            name = name or (Path(plain).stem if isinstance(plain, str | os.PathLike) else type(plain).__name__)
            self.last_report = package.write(Path(directory), looked_up, files, name=name, reference=reference)
        self.last_report.log()
        return Path(directory)

    def recheck(self, workloads: Sequence[str], target: Any = "auto") -> Job:
        """Race the bests of some workloads again, with the unscheduled programs.

        The service does the same by itself when a best is old, or when a kernel, a driver or TVM has changed.

        Args:
            workloads: hashes of the workloads.
            target: on which machines.

        Returns:
            The queued job; `Job.rechecks` tells what came of it.

        Raises:
            InvalidRequest: none of them has a best on such machines.
        """
        wanted = body(schemas.NewRecheck, workloads=list(workloads), target=on_wire(target))
        return Job(self._transport, parse(schemas.Job, self._transport.request("POST", f"{API}/rechecks", json=wanted)))

    def relax_pipeline(self, target: Any = "auto") -> Any:
        """Return a pipeline with the bests in it, which takes the place of TVM's own; what it missed is logged.

        It is for those who build by themselves: ``relax.build(mod, target,
        relax_pipeline=client.relax_pipeline(target))``.

        Args:
            target: what to look up bests for.
        """
        require_tvm()
        from loopwright import applying

        return applying.pipeline(self._ask(target), _tvm_target(target))

    def database(self, target: Any = "auto", device_class: str | None = None) -> Any:
        """Return the bests for a target as a read-only ``tvm.s_tir.meta_schedule.Database``.

        It asks the service for a program when TVM first asks for it, and keeps the answer; ``look_up(mod)`` asks for
        all functions of a lowered module in one request. ``get_all_tuning_records()`` and ``len()`` are about what
        was asked for so far. Its ``hits`` and ``misses`` name what TVM asked it for.

        Args:
            target: what to look up bests for.
            device_class: only bests of these machines.
        """
        require_tvm()
        from loopwright.database import as_database

        return as_database(self._ask(target, device_class), _tvm_target(target))

    def records(
        self, workload_hash: str | None = None, target: Any = None, sort: str = "latency"
    ) -> Listing[schemas.Record]:
        """Return measured trials.

        Args:
            workload_hash: only those of this workload.
            target: only those for this target.
            sort: ``"latency"`` for the fastest first, or ``"newest"``.

        Returns:
            A list that is read page by page, and shown as a table in terminals and notebooks.
        """
        query = {"workload_hash": workload_hash, "sort": sort, "page_size": PAGE_SIZE}
        if target is not None:
            query["target"] = as_text(target)
        return Listing(self._transport.pages(schemas.Record, f"{API}/records", **query), RECORDS)

    def record(self, record_id: str) -> schemas.RecordDetail:
        """Return a measured trial in full: trace, raw samples, device, certificate, the program before and after.

        Args:
            record_id: ``Record.id``.

        Raises:
            NotFound: there is no such record.
        """
        return self._transport.get(schemas.RecordDetail, f"{API}/records/{quote(record_id, safe='')}")

    def export_records(self, directory: str | Path) -> Path:
        """Write TVM's JSON pair of the certified bests into a directory.

        Args:
            directory: made if need be.

        Returns:
            The directory.
        """
        with tempfile.TemporaryFile() as tar:
            self._transport.download(f"{API}/records/export", tar)
            return archive.unpack(tar, Path(directory))

    def import_records(self, directory: str | Path) -> schemas.ImportReport:
        """Send the JSON pair of a TVM tuning database (or what `export_records` wrote). Known records are passed over.

        What is large is sent in parts. Those before one that is refused are stored.

        Args:
            directory: has ``database_workload.json`` and ``database_tuning_record.json``.

        Returns:
            How many records were stored, and why others were not.

        Raises:
            FileNotFoundError: one of the pair is missing.
            ValueError: it is no such directory; the message says why logs of AutoTVM and auto_scheduler are not taken.
        """
        path = Path(directory)
        if logged_tasks(path):
            raise ValueError(f"{path} has logs of earlier tuners. {NOT_IMPORTED}")
        if path.is_file():
            raise ValueError(f"{path} is a file; give the directory that contains {' and '.join(archive.MEMBERS)}")
        return import_pair(self._transport, f"{API}/records/import", path)

    def workers(self) -> Iterator[schemas.Worker]:
        """Yield the machines that build and measure."""
        return self._transport.pages(schemas.Worker, f"{API}/workers", page_size=PAGE_SIZE)

    def drain_worker(self, worker_id: str) -> schemas.Worker:
        """Have a worker get no new work; what it is at ends. Jobs go on on others of its device class, or wait.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: somebody other than an admin asks.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "drain")

    def undrain_worker(self, worker_id: str) -> schemas.Worker:
        """Have a drained worker get work again.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: somebody other than an admin asks.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "undrain")

    def _change_worker(self, worker_id: str, change: str) -> schemas.Worker:
        path = f"{API}/workers/{quote(worker_id)}/{change}"
        return parse(schemas.Worker, self._transport.request("POST", path, repeatable=True))

    def targets(self) -> Iterator[schemas.TargetOffer]:
        """Yield what live workers offer to tune for; the first is what ``auto`` selects."""
        return self._transport.pages(schemas.TargetOffer, f"{API}/targets", page_size=PAGE_SIZE)

    def version(self) -> schemas.Version:
        """Return the versions of the service and of its TVM."""
        return self._transport.get(schemas.Version, "/version")

    def _apply(self, looked_up: Any) -> tuple[Any, Any]:
        """The module with the bests applied, and its target; keeps the report."""
        from loopwright import applying

        applied, self.last_report = applying.apply(looked_up)
        self.last_report.log()
        return applied, looked_up.target

    def _compile_portfolio(self, source: Model, target: Any, params: dict[str, Any] | None) -> Any:
        require_tvm()
        from loopwright import shape_dispatch

        program = _program(source, {})
        self.last_plan = shape_dispatch.plan(program, source.portfolio)
        built, self.last_report = shape_dispatch.compiled(
            program, self.last_plan, self._ask(target), _tvm_target(target), params
        )
        self.last_report.log()
        return built

    def _environment(self) -> dict[str, str]:
        """What a `Client` of another process needs to be like this one."""
        return config.environment(self._transport.endpoint)

    def _ask(self, target: Any, device_class: str | None = None) -> Callable[[list[str]], schemas.LookupAnswer]:
        """What asks the service about workload hashes, for a target."""

        def ask(hashes: list[str]) -> schemas.LookupAnswer:
            functions = list(hashes)
            wanted = body(schemas.Lookup, functions=functions, target=on_wire(target), device_class=device_class)
            response = self._transport.request("POST", f"{API}/workloads/lookup", json=wanted, repeatable=True)
            return parse(schemas.LookupAnswer, response)

        return ask


def _reference(against: Any) -> Any:
    """What the service takes for a reference: a job's id or name, or the functions in a file."""
    if isinstance(against, Job):
        return against.id
    if isinstance(against, str | os.PathLike) and Path(against).is_file():
        return read_reference(Path(against))
    return os.fspath(against)


def _program(source: Model, shape: dict[str, int]) -> Program:
    """Return the program of a model, with its math, and with the symbolic extents that ``shape`` names bound."""
    program = frontends.to_program(source)
    from loopwright.codegen.lowering import bind_shapes
    from loopwright.codegen.tf32 import with_tf32
    from loopwright.codegen.vector_math import with_exact_math

    module = bind_shapes(program.module, shape)
    if source.exact_math:
        module = with_exact_math(module)
    return Program(with_tf32(module) if source.math == "tf32" else module, program.weights)


def _tvm_target(target: Any) -> Any:
    """A ``tvm.target.Target``; None for ``auto``, of which only the service knows what it is."""
    from loopwright.codegen.target import target_from

    return None if isinstance(target, str) and target.strip() == "auto" else target_from(target)
