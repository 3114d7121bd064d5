"""Calls that lower models, and compile them with the bests."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from loopwright.applying.report import ApplyReport
from loopwright.calls.connection import API
from loopwright.calls.shapes import ShapeCalls
from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.compile_options import CompileOptions
from loopwright.errors import NotFound
from loopwright.extras import require_tvm
from loopwright.jobs.targets import as_text, tvm_target
from loopwright.model import ModelOptions, Tune, as_model
from loopwright.shapes.plan import is_portfolio

if TYPE_CHECKING:
    from loopwright.applying.lookup import LookedUp
    from loopwright.caching.stored_report import StoredReport
    from loopwright.compiler import Compiler
    from loopwright.decoding.decoder import Decoder
    from loopwright.locking.lock import Lock
    from loopwright.results.best import Best

_WORKLOAD_HASH = re.compile(r"[0-9a-f]{32}")


class ModelCalls(ShapeCalls):
    """Models, and the bests of their functions."""

    _last_report: ApplyReport | StoredReport | None = None

    @property
    def last_report(self) -> ApplyReport | None:
        """Which functions were tuned and which missed in the last `apply`, `compile` or `package`."""
        report = self._last_report
        return report if report is None or isinstance(report, ApplyReport) else report.full

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

    def _compiler(self) -> Compiler:
        require_tvm()
        from loopwright.compiler import Compiler

        return Compiler(self._bests)

    def _report(self, report: ApplyReport | StoredReport) -> None:
        self._last_report = report
        report.log()
