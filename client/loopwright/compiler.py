"""What becomes of models: programs, lowered modules with their bests, and what they compile to. Needs TVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loopwright import frontends
from loopwright.applying import dispatch as shape_dispatch
from loopwright.applying.agreement import agreement
from loopwright.applying.assembling import assembled, functions_in
from loopwright.applying.lookup import Ask, LookedUp, look_up_all
from loopwright.applying.report import ApplyReport
from loopwright.codegen.cpu.vector_math import with_exact_math
from loopwright.codegen.gpu.tf32 import with_tf32
from loopwright.compile_options import CompileOptions
from loopwright.frontends.program import Program
from loopwright.jobs.targets import tvm_target
from loopwright.locking import pinning
from loopwright.locking.lock import Lock
from loopwright.model import Model
from loopwright.service_bests import ServiceBests
from loopwright.session.config import functions_folder
from loopwright.shapes.plan import Portfolio, is_portfolio

if TYPE_CHECKING:
    from loopwright.decoding.decoder import Decoder


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model's program, what was looked up for it, what it compiled to, and the report on its functions."""

    program: Program
    model: LookedUp
    executable: Any
    report: ApplyReport


class Compiler:
    """Compiles models with the bests that a service or a lock knows."""

    def __init__(self, bests: ServiceBests) -> None:
        """Take the bests of a service, which is not asked for compilations with a lock."""
        self._bests = bests

    def look_up(self, source: Model, options: CompileOptions) -> LookedUp:
        """Lower a model, look up its functions, and with ``tune`` predict those that missed."""
        [found] = self._look_up([program_of(source, source.shape)], options, options.ask(self._bests))
        return found

    def lock(self, sources: Sequence[Model], target: Any, *, allow_unscheduled: bool) -> Lock:
        """Pin the functions of models, for each of their shapes or buckets (`pinning.pin`)."""
        options = CompileOptions(target)
        programs = [program for source in sources for program in _programs(source)]
        models = self._look_up(programs, options, options.ask(self._bests))
        return pinning.pin(models, self._bests.keys(), allow_unscheduled=allow_unscheduled)

    def build(self, source: Model, options: CompileOptions, ask: Ask | None = None) -> Compiled:
        """Build a model of one shape, and compare it with the model unless ``verify`` is false.

        Args:
            source: the model.
            options: the options.
            ask: what to ask for bests; by default the lock or the service.
        """
        program = program_of(source, source.shape)
        [model] = self._look_up([program], options, ask or options.ask(self._bests))
        executable, report = assembled(model, functions_in(functions_folder()))
        if options.verify and not options.params:
            found = agreement(program.reference, executable, model.module, model.target)
            report = replace(report, agreement=found)
        return Compiled(program, model, executable, report)

    def build_portfolio(self, source: Model, options: CompileOptions) -> tuple[Any, ApplyReport, Portfolio]:
        """Build one module for many values of an extent (`loopwright.applying.dispatch`); also return its buckets.

        Raises:
            ValueError: with ``tune``.
        """
        if options.tune is not None:
            raise ValueError("tune is for a model that has one shape; leave out shapes or tune")
        program, portfolio, buckets = _buckets(source)
        models = self._look_up(buckets, options, options.ask(self._bests))
        built, report = shape_dispatch.compiled(program, portfolio, models, options.params, verify=options.verify)
        return built, report, portfolio

    def build_decoder(self, sources: dict[int, Model], options: CompileOptions) -> tuple[Decoder, ApplyReport]:
        """Build the programs of a decoder, which are given by the number of tokens in a call."""
        from loopwright.decoding.compiling import check_target, compiled

        target = tvm_target(options.target if options.lock is None else options.lock.target)
        if target is not None:  # before the model is traced, which takes seconds
            check_target(target)
        programs = {length: program_of(source, {}) for length, source in sources.items()}
        models = self._look_up(list(programs.values()), options, options.ask(self._bests))
        return compiled(programs, models, verify=options.verify)

    def _look_up(self, programs: Sequence[Program], options: CompileOptions, ask: Ask) -> list[LookedUp]:
        """Lower programs, and look up the bests of all of their functions in one request."""
        target = tvm_target(options.target)
        if options.tune is None:
            models = look_up_all(programs, ask, target, options.params)
            if options.lock is not None:
                pinning.check(options.lock, models)
            return models
        from loopwright.applying import instant

        models = look_up_all(programs, instant.or_nothing(ask, target), target, options.params)
        functions = functions_in(functions_folder())
        return [instant.predicted(model, functions) for model in models]


def plan(source: Model, **options: Any) -> Portfolio:
    """Return the buckets of a model with many values of an extent (`loopwright.applying.dispatch.plan`)."""
    return shape_dispatch.plan(program_of(source, {}), source.portfolio, **options)


def program_of(source: Model, shape: dict[str, int]) -> Program:
    """Return the program of a model, with its math, and with the symbolic extents that ``shape`` names bound."""
    program = frontends.to_program(source).bind(shape)
    module = program.module
    if source.exact_math:
        module = with_exact_math(module)
    return replace(program, module=with_tf32(module) if source.math == "tf32" else module)


def _programs(source: Model) -> list[Program]:
    """Return the programs of a model: for each of its shapes, or for the buckets that it is compiled with."""
    if is_portfolio(source.shapes):
        return _buckets(source)[2]
    shapes = source.shapes if isinstance(source.shapes, list) else [source.shape]
    return [program_of(source, shape) for shape in shapes]


def _buckets(source: Model) -> tuple[Program, Portfolio, list[Program]]:
    """Return the program of a model with many values of an extent, its buckets, and the program of each bucket."""
    program = program_of(source, {})
    portfolio = shape_dispatch.plan(program, source.portfolio)
    return program, portfolio, shape_dispatch.bound(program, portfolio)
