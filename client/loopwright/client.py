"""The client of a Loopwright service in Python."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload
from urllib.parse import quote

from loopwright import frontends, schemas
from loopwright.applying.report import ApplyReport
from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.compile_options import CompileOptions
from loopwright.errors import NotFound
from loopwright.extras import require_tvm
from loopwright.frontends import stochastic
from loopwright.jobs.check_result import CheckResult, gate_against
from loopwright.jobs.job import Job
from loopwright.jobs.job_group import JobGroup
from loopwright.jobs.submit_options import BudgetAndModelOptions, SubmitOptions
from loopwright.jobs.targets import as_text, on_wire, tvm_target
from loopwright.model import ModelOptions, OtherOptions, Shapes, Tune, as_model
from loopwright.results.tables import BESTS, RECORDS, Listing
from loopwright.service_bests import ServiceBests
from loopwright.session import config
from loopwright.session.access import Access
from loopwright.session.transport import TIMEOUT, Transport, body, parse
from loopwright.session.webhooks import Webhooks
from loopwright.shapes.plan import BUCKET_PRICE, MAX_BUCKETS, Portfolio, is_portfolio

if TYPE_CHECKING:
    from loopwright.applying.lookup import LookedUp
    from loopwright.caching.stored_report import StoredReport
    from loopwright.compiler import Compiler
    from loopwright.decoding.decoder import Decoder
    from loopwright.locking.lock import Lock
    from loopwright.packs.manifest import PackManifest
    from loopwright.results.best import Best
    from loopwright.results.comparison import Comparison

API = "/api/v1"
PAGE_SIZE = 200
_WORKLOAD_HASH = re.compile(r"[0-9a-f]{32}")


class Client:
    """A connection to a service. Close it by `close`, or use it as a context manager.

    A client is thread-safe, except ``last_report`` and ``last_plan``. Each call may raise `CouldNotReach` (there was no
    answer, after retries if repeating does no harm) and a `ServiceError` (the service refused the request; the subclass
    says why). A ``target`` is ``"auto"`` (the service selects it), a TVM target string, tag or JSON text, a dictionary,
    or a ``tvm.target.Target``.
    """

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = TIMEOUT) -> None:
        """Find the service, without connecting to it; the first request connects.

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
        """Users, tokens and usage."""
        self.webhooks: Webhooks = Webhooks(self._transport)
        """Addresses that the service notifies of events."""
        self._bests = ServiceBests(self._transport)
        self._last_report: ApplyReport | StoredReport | None = None
        self.last_plan: Portfolio | None = None
        """The buckets of the last `plan_shapes`, or of the last `submit` or `compile` with ranges of shapes."""

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._transport.endpoint.url

    @property
    def last_report(self) -> ApplyReport | None:
        """Which functions were tuned and which missed in the last `apply`, `compile` or `package`."""
        report = self._last_report
        return report if report is None or isinstance(report, ApplyReport) else report.full

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

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
        space: stochastic.Space | None = None,
        seed: int = 0,
        name: str | None = None,
        priority: int = 0,
        force: bool = False,
        visibility: schemas.Visibility = "team",
        gate: schemas.Gate | None = None,
        labels: dict[str, str] | None = None,
        tags: Sequence[str] = (),
        description: str = "",
        idempotency_key: str | None = None,
        **options: Unpack[BudgetAndModelOptions],
    ) -> Job | JobGroup:
        """Submit a model for tuning; return at once with the queued job, or with a group of jobs for ``targets``.

        Args:
            model: a `Model`, or a plain model with the options of `Model` as keyword arguments.
            target: the target to tune for.
            targets: up to 8 targets, in place of ``target``. Each becomes a job, with the whole budget; all jobs are
                stored, or none.
            space: None (the built-in space), a function ``f(sch)`` that makes stochastic choices (run here; only its
                trace is sent), a trace, or a list of traces ``[instructions, decisions]``.
            seed: seed of the search.
            name: name of the job; by default the service derives it from the model.
            priority: -100 to 100; jobs with a higher priority run first. Only admins may give one above 0.
            force: search even if the database already has the answer.
            visibility: ``"private"`` hides the job from all but its owner and admins, and its workloads unless others
                submitted them, too.
            gate: the reference with which the tuned model is compared; `check` makes one.
            labels: ``{"rack": "a"}``: only workers that have all of these labels measure the job.
            tags: words by which `jobs` narrows the list, such as ``["nightly"]``.
            description: what the job is for; shown on its page.
            idempotency_key: a second submission with the same key returns the same job. By default a new key, so that
                a retry after a lost answer submits once.
            options: the budget, and the options of a plain model. ``max_trials`` (64 by default), ``max_seconds``,
                ``max_device_seconds``, ``target_latency_us`` and ``until="plateau"`` are described by `schemas.Budget`.

        Raises:
            TypeError: the model or the space is of a kind that is not accepted; an option is missing, is not for this
                kind of model, or is given beside a `Model`; or ``targets`` is a string.
            UnsupportedModel: the model cannot be turned into a module; the message names the part.
            ValueError: a budget, priority or name is out of bounds, or both ``target`` and ``targets`` are given.
            InvalidRequest: the service cannot tune the model, no worker runs code for a target, or two targets are the
                same; the detail says what to change.
        """
        if isinstance(targets, str):
            raise TypeError(f"targets={targets!r} should be a list; give a single one as target")
        budget = {name: value for name, value in options.items() if name in schemas.Budget.model_fields}
        source = as_model(model, **{name: value for name, value in options.items() if name not in budget})
        shapes = self.plan_shapes(source).shapes if is_portfolio(source.shapes) else source.shapes
        if bound := frontends.bound(source):
            shapes = _without(shapes, bound)
        request = body(
            schemas.SubmitJob,
            module=frontends.to_payload(source),
            target=on_wire(target),
            targets=None if targets is None else [on_wire(each) for each in targets],
            name=name,
            seed=seed,
            priority=priority,
            budget=budget,
            space=stochastic.to_traces(space, source),
            shapes=shapes,
            force=force,
            exact_math=source.exact_math,
            math=source.math,
            visibility=visibility,
            gate=None if gate is None else gate.model_dump(mode="json"),
            labels=labels or {},
            tags=list(tags),
            description=description,
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

        The model is submitted: known functions are answered from the database, and new ones are tuned. Then the model
        is raced with the reference on the fleet, until it is clear whether one run of it takes longer by more than
        ``max_slowdown``.

        Args:
            model: as for `submit`.
            against: a `Job` or its id; the name of jobs, for the newest of them that succeeded; or the path of a file
                that `CheckResult.record` wrote.
            target: the target to tune and race for, which is that of the reference.
            max_slowdown: a share, 0.03 for three percent.
            progress: whether to draw progress bars on standard error.
            submission: further arguments of `submit`, such as ``max_trials``, ``shapes`` and ``example_inputs``; not
                ``targets``.

        Returns:
            The finished job and the result of the race; ``passed`` is true unless a regression was shown.

        Raises:
            CheckFailed: the job did not succeed; its message says why.
            InvalidRequest: there is no such reference, or it is of another device class.
        """
        job = self.submit(model, target, targets=None, gate=gate_against(against, max_slowdown), **submission)
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

    def jobs(
        self,
        owner: str | None = None,
        group: str | None = None,
        *,
        name: str | None = None,
        states: Sequence[schemas.JobState] = (),
        tag: str | None = None,
        search: str | None = None,
        since: datetime | None = None,
        sort: schemas.JobSort = "created",
    ) -> Iterator[Job]:
        """Yield jobs, the newest first unless sorted otherwise, or those of one group in the order of its targets.

        Args:
            owner: only jobs of this user.
            group: only jobs of this group.
            name: only jobs of this name.
            states: only jobs in one of these states.
            tag: only jobs with this tag.
            search: only jobs whose name contains this, or whose id begins with it.
            since: only jobs that were submitted then or later; a time with its zone.
            sort: ``"created"``, ``"name"``, or ``"gain"``: those first that save most of one run of their model.
        """
        wanted = {
            **{"owner": owner, "group": group, "name": name, "state": list(states) or None, "tag": tag, "q": search},
            **{"since": None if since is None else since.isoformat(), "sort": None if sort == "created" else sort},
        }
        for info in self._transport.pages(schemas.Job, f"{API}/jobs", **wanted, page_size=PAGE_SIZE):
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

    def best(self, model_or_workload_hash: Any, target: Any = "auto", **options: Unpack[ModelOptions]) -> Best | None:
        """Return the certified best of a workload, or None if none is known.

        Args:
            model_or_workload_hash: a workload's hash; or a model with one PrimFunc, as for `submit`.
            target: the target to look up the best for.
            options: the options of a plain model, as they were submitted.

        Raises:
            ValueError: the model has no or several functions after lowering; use `apply` for such models.
        """
        model = model_or_workload_hash
        if isinstance(model, str) and _WORKLOAD_HASH.fullmatch(model):
            from loopwright.results.best import Best

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
            target: the target to list bests for.

        Returns:
            A list that is read page by page, and shown as a table in terminals and notebooks.
        """
        from loopwright.results.best import Best

        query = {"target": as_text(target), "page_size": PAGE_SIZE}
        return Listing(self._transport.pages(Best, f"{API}/bests", **query), BESTS)

    def look_up(
        self,
        model: Any,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        *,
        tune: Tune | None = None,
        lock: str | os.PathLike[str] | Lock | None = None,
        **options: Unpack[ModelOptions],
    ) -> LookedUp:
        """Lower a model, and look up its functions in one request. `compile` also applies the bests.

        Args:
            model: as for `submit`.
            target: the target to look up bests for.
            params: values of parameters of ``main``, by name (Relax only).
            tune: as for `compile`.
            lock: as for `compile`.
            options: the options of a plain model, as they were submitted.

        Returns:
            The lowered module, its target, the bests by name of function, and what was predicted for other functions.
        """
        source = as_model(model, **options)
        return self._compiler().look_up(source, CompileOptions.of(target, params, lock=lock, tune=tune))

    def apply(
        self,
        mod: Any,
        target: Any = "auto",
        *,
        tune: Tune | None = None,
        **options: Unpack[ModelOptions],
    ) -> Any:
        """Return a copy of a module with the best schedules applied, as an IRModule.

        A Relax module is legalised and fused. ``last_report`` says for each function whether it was tuned, is best as
        it is, or missed. Misses are also logged as a warning.

        Args:
            mod: the model, as for `submit`.
            target: the target to look up bests for.
            tune: as for `compile`.
            options: the options of a plain model, as they were submitted.

        Raises:
            UnsupportedModel: the model cannot be turned into a module; the message names the part.
            TvmUnavailable: TVM is not installed.
        """
        looked_up = self.look_up(mod, target, tune=tune, **options)
        from loopwright.applying.apply import apply

        applied, report = apply(looked_up)
        self._report(report)
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
        """Choose the buckets of a model that is called with many extents, without a request to the service.

        `submit` and `compile` take the portfolio as ``shapes``, or choose it themselves. Calls can be padded if the
        model computes each sample of its results from the same sample of its inputs alone.

        Args:
            model: as for `submit`.
            shapes: the extents and their weights, as `loopwright.plan_shapes` takes them; by default, those of the
                `Model`.
            max_buckets: maximum number of buckets.
            bucket_price: the least that one more bucket must save, as a fraction of the time without padding.
            options: the options of a plain model, as for `submit`.

        Raises:
            ValueError: ``shapes`` does not give many values of one extent.
            InvalidModule: the model has no Relax function with the symbolic extent.
        """
        require_tvm()
        from loopwright.compiler import plan

        source = as_model(model, **options) if shapes is None else as_model(model, shapes=shapes, **options)
        self.last_plan = plan(source, max_buckets=max_buckets, bucket_price=bucket_price)
        return self.last_plan

    def compile(
        self,
        mod: Any,
        target: Any = "auto",
        params: dict[str, Any] | None = None,
        *,
        verify: bool = True,
        cache: str | os.PathLike[str] | None = None,
        lock: str | os.PathLike[str] | Lock | None = None,
        tune: Tune | None = None,
        **options: Unpack[ModelOptions],
    ) -> Any:
        """Build a module with the best schedules.

        Functions that missed are built as TVM builds them by default; ``last_report`` names them. With
        ``tune="instant"``, they get the schedule that was imported for them, or else the one that their rule would try
        first, if it computes the same as the unscheduled function on random inputs and is faster in a few calls, here
        and now: such functions are ``predicted`` in the report, and have no certificate. A module for another
        architecture does not run on this machine: `loopwright.export_library` writes a library for the other machine.

        A model of PyTorch, or of ONNX where ONNX Runtime is installed, is compared with the compiled program: both are
        called, and must agree in number, dtypes, shapes and values of their outputs (``last_report.agreement``). A call
        on inputs with NaN, infinities and zeros of both signs is only reported, in its field ``special``.
        Nothing is compared if the target is not this machine's CPU, if ``params`` are bound, or if the example inputs
        have other extents than ``shapes``.

        With many values of an extent in ``shapes``, a call may have any extent: the module has a tuned variant for each
        bucket that the certificates show to be faster, and the untuned functions for all other calls.

        Args:
            mod: the model, as for `submit`.
            target: the target to build for.
            params: values that are bound to ``main`` by name (Relax only). The model's own weights are always bound.
            verify: whether to compare the program with the model.
            cache: a folder that keeps what was compiled for this machine's CPU, for the next process, which loads it
                without TVM's compiler while the service knows the same bests, or does not answer. Files that have not
                changed since are not read again; modules of PyTorch are exported to tell what they are. Only its owner
                may write to it.
            lock: a file that ``loopwright lock`` wrote, or a `Lock`: the module is built with exactly its bests, for
                its target, and no service is asked. With many values of an extent, of each bucket.
            tune: ``"instant"`` schedules functions that the service does not know, in seconds and without trials. It
                needs no service: without one, no function is known, and ``auto`` is the CPU of this machine.
            options: the options of a plain model, as they were submitted.

        Returns:
            A ``relax.VMExecutable`` for ``relax.VirtualMachine``, or a ``tvm.runtime.Module`` for a module without
            Relax; with ``state``, a `StatefulModel`, which is called with the model's inputs; with ``cache``, a
            `PackagedModel`, as `loopwright.load` returns it, which is called with them, too.

        Raises:
            UnsupportedModel: the model cannot be turned into a module; the message names the part. Or a ``cache`` is
                given for another machine's target.
            ValueError: a ``cache`` is given with ``state``, with many values of an extent, or for a module that has no
                Relax function ``main`` or an input without a fixed shape; or ``tune`` is unknown, or given with a
                ``lock`` or with many values of an extent.
                Or a ``lock`` cannot be read, or is for another target.
            PermissionError: others may write to the ``cache``.
            NotLocked: the ``lock`` has no best of a function.
            WrongCertificate: a best in the ``lock`` is not what its service signed.
            WrongAnswer: the program does not compute what the model computes.
            TvmUnavailable: TVM is not installed.
        """
        source = as_model(mod, **options)
        settings = CompileOptions.of(target, params, verify=verify, lock=lock, tune=tune)
        built: Any
        report: ApplyReport | StoredReport
        if cache is not None:
            from loopwright.caching.cache import compiled

            built, report = compiled(source, settings, cache, self._bests)
        elif is_portfolio(source.shapes):
            built, report, self.last_plan = self._compiler().build_portfolio(source, settings)
        else:
            found = self._compiler().build(source, settings)
            built, report = found.executable, found.report
            if source.state is not None:
                from loopwright.stateful import StatefulModel

                built = StatefulModel(built, found.program.buffers, found.model.target)
        self._report(report)
        return built

    def compile_decoder(
        self,
        model: Any,
        *,
        max_length: int,
        prompt_lengths: Sequence[int] | None = None,
        target: Any = "auto",
        verify: bool = True,
        exact_math: bool = False,
        math: MathMode = FP32,
        int8_activations: bool = False,
        lock: str | os.PathLike[str] | Lock | None = None,
    ) -> Decoder:
        """Build a causal language model of ``transformers`` for generating tokens, with the best schedules.

        The programs are those of `loopwright.decoder_programs`, which `submit` takes to tune them: one for a single
        token, whatever the number of tokens before it, and one for each length of prompts.

        Args:
            model: such as ``LlamaForCausalLM``, in evaluation mode, on a CPU.
            max_length: the number of tokens that the cache has room for, prompt and result together.
            prompt_lengths: prompts are padded to the next of these lengths, or cut into parts; by default one length,
                64 or what there is room for.
            target: the target to build for, which is the CPU of this machine.
            verify: whether to compare each program with the model.
            exact_math: as it was submitted.
            math: as it was submitted.
            int8_activations: as it was submitted.
            lock: as for `compile`, of all programs.

        Returns:
            The model with its cache, which generates tokens.

        Raises:
            UnsupportedModel: the model is no causal language model, or cannot be turned into a module; the message
                names the part. Or the target is not this machine's CPU.
            ValueError: a length is not from 1 to ``max_length``; or the ``lock`` cannot be read, or is for another
                target.
            NotLocked: the ``lock`` has no best of a function.
            WrongCertificate: a best in the ``lock`` is not what its service signed.
            WrongAnswer: a program does not compute what the model computes.
            TvmUnavailable: TVM is not installed.
        """
        compiler = self._compiler()
        from loopwright.decoding.programs import decoder_programs

        options = CompileOptions.of(target, verify=verify, lock=lock)
        sources = decoder_programs(
            model,
            max_length=max_length,
            prompt_lengths=prompt_lengths,
            exact_math=exact_math,
            math=math,
            int8_activations=int8_activations,
        )
        decoder, report = compiler.build_decoder(sources, options)
        self._report(report)
        return decoder

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
        `loopwright.verify` repeats the checks on the machine that has the folder. `loopwright.load` runs the model. To
        write the folder, a C++ compiler is needed. Functions that missed are logged.

        Args:
            model: as for `submit`.
            directory: the folder to write. It must be empty or not exist.
            target: the target to build for, which is a CPU.
            params: values that are bound to ``main`` by name.
            name: name of the model in the manifest; by default that of the file or class.
            options: the options of a plain model, as they were submitted.

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
                files = writing.complete(files, looked_up, source)
            plain = source.model
            name = name or (Path(plain).stem if isinstance(plain, str | os.PathLike) else type(plain).__name__)
            report = package.write(Path(directory), looked_up, files, name=name, reference=reference)
        self._report(report)
        return Path(directory)

    def recheck(self, workloads: Sequence[str], target: Any = "auto") -> Job:
        """Race the bests of some workloads again, with the unscheduled programs.

        The service does this by itself when a best is old, and when a kernel, a driver or TVM has changed.

        Args:
            workloads: hashes of the workloads.
            target: the target whose machines race.

        Returns:
            The queued job; `Job.rechecks` returns its results.

        Raises:
            InvalidRequest: none of the workloads has a best on such machines.
        """
        wanted = body(schemas.NewRecheck, workloads=list(workloads), target=on_wire(target))
        return Job(self._transport, parse(schemas.Job, self._transport.request("POST", f"{API}/rechecks", json=wanted)))

    def ablate(self, record_id: str) -> Job:
        """Race a record's schedule with its neighbours, each of which differs in one decision.

        Args:
            record_id: the record, whose device class has a live worker.

        Returns:
            The queued job; `ablation` returns its result.

        Raises:
            InvalidRequest: the record is the unscheduled program, or no worker has its device class.
        """
        answer = self._transport.request("POST", f"{API}/records/{quote(record_id, safe='')}/ablation")
        return Job(self._transport, parse(schemas.Job, answer))

    def ablation(self, record_id: str) -> schemas.Ablation | None:
        """Return the newest ablation of a record, with its result once the races are over; None if there was none.

        Args:
            record_id: the record.
        """
        answer = self._transport.request("GET", f"{API}/records/{quote(record_id, safe='')}/ablation")
        return None if answer.json() is None else parse(schemas.Ablation, answer)

    def lineage(self, record_id: str) -> schemas.Lineage:
        """Return the measured ancestors of a record, what each mutation changed, and how the best differs from it.

        Args:
            record_id: the record.
        """
        return self._transport.get(schemas.Lineage, f"{API}/records/{quote(record_id, safe='')}/lineage")

    def relax_pipeline(self, target: Any = "auto") -> Any:
        """Return a Relax pipeline that applies the bests, for use in place of TVM's; functions that missed are logged.

        Use it to build without `compile`: ``relax.build(mod, target,
        relax_pipeline=client.relax_pipeline(target))``.

        Args:
            target: the target to look up bests for.
        """
        require_tvm()
        from loopwright.applying.apply import pipeline

        return pipeline(self._bests.on_target(target), tvm_target(target))

    def database(self, target: Any = "auto", device_class: str | None = None) -> Any:
        """Return the bests for a target as a read-only ``tvm.s_tir.meta_schedule.Database``.

        The database asks the service for a program when TVM first asks for the program, and keeps the answer.
        ``look_up(mod)`` asks for all functions of a lowered module in one request. ``get_all_tuning_records()`` and
        ``len()`` cover the programs that were asked for so far. ``hits`` and ``misses`` name the programs that TVM
        asked for.

        Args:
            target: the target to look up bests for.
            device_class: only bests of these machines.
        """
        require_tvm()
        from loopwright.applying.database import as_database

        return as_database(self._bests.on_target(target, device_class), tvm_target(target))

    def records(
        self, workload_hash: str | None = None, target: Any = None, sort: str = "latency"
    ) -> Listing[schemas.Record]:
        """Return measured trials.

        Args:
            workload_hash: only trials of this workload.
            target: only trials for this target.
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

    def signing_keys(self) -> Iterator[schemas.SigningKey]:
        """Yield the public keys with which the service signs certificates, the newest first, and all earlier ones."""
        return self._bests.keys()

    def export_records(self, directory: str | Path) -> Path:
        """Write TVM's JSON pair of the certified bests into a directory.

        Args:
            directory: the directory to write. It is made if it does not exist.

        Returns:
            The directory.
        """
        from loopwright.results import archive

        with tempfile.TemporaryFile() as tar:
            self._transport.download(f"{API}/records/export", tar)
            return archive.unpack(tar, Path(directory))

    def import_records(self, directory: str | Path) -> schemas.ImportReport:
        """Send the JSON pair of a TVM tuning database, such as `export_records` writes. Known records are skipped.

        A large pair is sent in parts. If a part is refused, the parts before it stay stored.

        Args:
            directory: the directory that contains ``database_workload.json`` and ``database_tuning_record.json``.

        Returns:
            The number of records that were stored, and the reasons why others were not.

        Raises:
            FileNotFoundError: one of the two files is missing.
            ValueError: it is a file, or has logs of AutoTVM or auto_scheduler; the message says why these are refused.
        """
        from loopwright.results.archive import MEMBERS
        from loopwright.results.importing import import_pair
        from loopwright.results.tuning_logs import NOT_IMPORTED, logged_tasks

        path = Path(directory)
        if logged_tasks(path):
            raise ValueError(f"{path} has logs of earlier tuners. {NOT_IMPORTED}")
        if path.is_file():
            raise ValueError(f"{path} is a file; give the directory that contains {' and '.join(MEMBERS)}")
        return import_pair(self._transport, f"{API}/records/import", path)

    def export_pack(
        self,
        path: str | Path,
        *,
        key: str | Path,
        creator: str,
        licence: str,
        name: str | None = None,
        jobs: Sequence[Job] | None = None,
        device_class: str | None = None,
        text: str | None = None,
    ) -> PackManifest:
        """Write certified bests, with their certificates and functions, to a pack: one signed file for other services.

        Args:
            path: the file to write.
            key: the file of the private key that signs it, which ``loopwright key new`` made.
            creator: who makes it.
            licence: its licence, such as ``Apache-2.0``.
            name: its name; by default that of the file.
            jobs: only bests of functions of these jobs.
            device_class: only bests of this device class.
            text: only bests of functions whose names contain this text.

        Returns:
            The pack's manifest.

        Raises:
            ValueError: no best is chosen, there are too many for a pack, or ``key`` is no such file.
            WrongCertificate: a certificate is not what the service signed.
        """
        from loopwright.packs import choosing, signing

        workloads = None if jobs is None else {task.workload_hash for job in jobs for task in job.tasks}
        choice = choosing.Choice(workloads, device_class, text)
        signed_by = signing.read_key(Path(key))
        name = name or Path(path).stem
        return choosing.export(
            self._transport, API, Path(path), choice, name=name, creator=creator, licence=licence, key=signed_by
        )

    def install_pack(self, path: str | Path, keys: str | Path) -> schemas.ImportReport:
        """Verify a pack, and import its bests. Jobs of the same functions try them first, and known ones are skipped.

        Args:
            path: the pack.
            keys: a file of public keys, as ``loopwright key list --json`` and ``loopwright key show --json`` print
                them. One of them must have signed the pack.

        Returns:
            The number of records that were stored, and the reasons why others were not.

        Raises:
            InvalidPack: it is no pack, was changed or cut off, its key is unknown or revoked, or it is for another
                version of TVM.
            ValueError: ``keys`` is no file of keys.
        """
        from loopwright.packs.archive import read
        from loopwright.packs.installing import install
        from loopwright.results import evidence

        pack = read(Path(path), evidence.read_keys(Path(keys)))
        return install(self._transport, f"{API}/records/import", pack, self.version())

    def lock(self, *models: Any, target: Any = "auto", allow_unscheduled: bool = False) -> Lock:
        """Return the present bests of all functions of some models, for a lock file with which `compile` builds them.

        Args:
            models: as for `submit`, or a `Model` with its options each. Of one with many values of an extent, all
                buckets are pinned. Of a decoder, give its `loopwright.decoder_programs`.
            target: the target to look up bests for.
            allow_unscheduled: whether functions without a best are pinned to their unscheduled programs.

        Raises:
            NotLocked: a function has no best, and ``allow_unscheduled`` is false.
            ValueError: no model is given.
        """
        sources = [as_model(model) for model in models]
        if not sources:
            raise ValueError("give one or more models to lock")
        return self._compiler().lock(sources, target, allow_unscheduled=allow_unscheduled)

    def workers(self) -> Iterator[schemas.Worker]:
        """Yield the machines that build and measure."""
        return self._transport.pages(schemas.Worker, f"{API}/workers", page_size=PAGE_SIZE)

    def drain_worker(self, worker_id: str) -> schemas.Worker:
        """Give a worker no new work. It finishes its current work.

        Jobs continue on other workers of its device class. Without any, they wait.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: the token is not an admin's.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "drain")

    def undrain_worker(self, worker_id: str) -> schemas.Worker:
        """Give a drained worker work again.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: the token is not an admin's.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "undrain")

    def _change_worker(self, worker_id: str, change: str) -> schemas.Worker:
        path = f"{API}/workers/{quote(worker_id)}/{change}"
        return parse(schemas.Worker, self._transport.request("POST", path, repeatable=True))

    def targets(self) -> Iterator[schemas.TargetOffer]:
        """Yield the targets that live workers offer; ``auto`` selects the first."""
        return self._transport.pages(schemas.TargetOffer, f"{API}/targets", page_size=PAGE_SIZE)

    def version(self) -> schemas.Version:
        """Return the versions of the service and of its TVM."""
        return self._transport.get(schemas.Version, "/version")

    def _compiler(self) -> Compiler:
        require_tvm()
        from loopwright.compiler import Compiler

        return Compiler(self._bests)

    def _report(self, report: ApplyReport | StoredReport) -> None:
        self._last_report = report
        report.log()


def _without(shapes: Any, names: frozenset[str]) -> Any:
    """Return shapes, of which there may be several, without the extents of some names; None if no other is left."""
    if isinstance(shapes, list):
        kept = [_without(shape, names) for shape in shapes]
        return kept if all(kept) else None
    return {name: extent for name, extent in shapes.items() if name not in names} or None
