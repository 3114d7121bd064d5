"""Answers for functions of which no best is known: the prior's choice, checked and timed on this machine. Needs TVM.

Each function is built as it is, and as its rules, or a record that the service imported, would schedule it: the latter
as the model will call it, so that it is built once (`loopwright.codegen.program.built_functions`). Both programs are
called on the same random inputs, and must agree as the contenders of a closing race must. Then both are timed briefly,
and the faster one is kept. That is no certificate: there is one set of inputs, there are a few calls, and other
processes may run meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm.target import Target

from loopwright import schemas
from loopwright.applying.agreement import runs_here
from loopwright.applying.lookup import Ask, LookedUp, digests
from loopwright.applying.report import Prediction
from loopwright.codegen.arrays import DRAWS, compare, index_bound, poison, random_array, tolerance
from loopwright.codegen.extents import buffer_shape
from loopwright.codegen.functions import used_prim_funcs, write_only
from loopwright.codegen.host import huge_pages
from loopwright.codegen.host.threads import usable_cores
from loopwright.codegen.kinds import Values
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program.argument_values import argument_values
from loopwright.codegen.program.bounds import unproven
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.built_functions import BuiltFunction, BuiltFunctions, Recipe
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.program.schedule import scheduled_function, scheduled_module
from loopwright.codegen.rules import prior
from loopwright.codegen.target import canonical_target
from loopwright.codegen.versions import CODEGEN_VERSION, VECTOR_MATH_VERSION
from loopwright.codegen.weights.packed_weight import PACK, PackedWeight
from loopwright.codegen.weights.prepacking import split
from loopwright.errors import CouldNotReach, ServiceUnavailable

logger = logging.getLogger("loopwright")

_TRIES = 3
"""Choices that are built until one agrees with the unscheduled program. Not tuned."""
_SAMPLE_SECONDS = 2e-4
"""Of one sample: the mean of as many calls as take so long. Short ones find the machine undisturbed. Not tuned."""
_TIMING_SECONDS = 0.02
"""Of all samples of a program, which has at least two. The least counts. Not tuned."""
_FAR_SLOWER = 4.0
"""A first call of the unscheduled program that took so many times longer needs no second one. Not tuned."""
_FAILURES = (RuntimeError, ValueError, TypeError, LookupError)
"""What TVM raises if a program cannot be built."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """See `loopwright.codegen.arrays.TensorInfo`."""

    shape: tuple[int, ...]
    dtype: str
    values: Values


@dataclass(frozen=True, slots=True)
class _Built:
    """A function's unscheduled program with the arguments and the seconds of its first call, and its first choice.

    ``choice`` is None if the program of ``trace`` cannot be built; ``choices`` yields the next traces, which ``make``
    builds.
    """

    workload: tvm.IRModule
    make: Callable[[list[Any]], Candidate]
    choices: Iterator[list[Any]]
    trace: list[Any]
    choice: Candidate | None
    unscheduled: Candidate
    expected: list[Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Checked:
    """A choice that agrees with the unscheduled program: both programs, and the seconds of their first calls."""

    workload: tvm.IRModule
    trace: list[Any]
    choice: Candidate
    unscheduled: Candidate
    first: tuple[float, float]


def or_nothing(ask: Ask, target: Target | None) -> Ask:
    """Return what asks the service, and answers that nothing is known if the service cannot be reached.

    Args:
        ask: asks the service once.
        target: the target of the question; None for ``auto``, which is this machine's CPU without a service.
    """

    def asked(hashes: list[str]) -> schemas.LookupAnswer:
        try:
            return ask(hashes)
        except (CouldNotReach, ServiceUnavailable) as error:
            logger.warning("no function has a certified best: %s", error)
            fields = json.loads(canonical_target(target or this_cpu()))
            return schemas.LookupAnswer(target=fields, functions=list(hashes), hits=[], misses=list(hashes))

    return asked


def completed(mod: tvm.IRModule, target: Target, missed: Collection[str], functions: BuiltFunctions) -> tvm.IRModule:
    """Return a lowered module with the functions of these names as they were faster here: as the prior would schedule
    them, or unscheduled."""
    used = {str(var.name_hint): (var, func) for var, func in used_prim_funcs(mod)}
    result = mod.clone()
    for name, prediction in _predictions(LookedUp(mod, target, {}), missed, functions).items():
        var, func = used[name]
        result.update_func(var, scheduled_function(func, normal_form(func), prediction.trace, target))
    return result


def predicted(model: LookedUp, functions: BuiltFunctions) -> LookedUp:
    """Return a model with predictions for functions without a best that a rule or an imported record can schedule.

    What was built of them is in ``functions`` then, as the model's executable takes it.
    """
    names = {str(var.name_hint) for var, _ in used_prim_funcs(model.module)} - set(model.bests)
    return replace(model, predictions=_predictions(model, names, functions))


def _predictions(model: LookedUp, names: Collection[str], functions: BuiltFunctions) -> dict[str, Prediction]:
    """Return predictions for functions of these names, by name. Equal functions are built once.

    What was imported for a function is tried before the prior's choices. There are none for another machine's target,
    or for a GPU's.
    """
    mod, target = model.module, model.target
    if not runs_here(target):
        return {}
    known = digests(mod) if model.digests is None else model.digests
    missed = {str(var.name_hint): func for var, func in used_prim_funcs(mod)}
    missed = {name: func for name, func in missed.items() if name in names and known.get(name)}
    distinct = {known[name][0]: func for name, func in missed.items() if _is_schedulable(func)}
    imported = {name: each for name, each in model.imported.items() if name in missed and _is_applicable(each)}
    shipped = {known[name][0]: each for name, each in imported.items()}
    load_intrinsics(target)

    def build(digest: str) -> _Built | None:
        first, func = shipped.get(digest), distinct[digest]

        def make(trace: list[Any]) -> Candidate:
            return Candidate.of(functions.built(func, Recipe.of(func, digest, trace), target))

        return _built(func, target, make, None if first is None else first.trace)

    with ThreadPoolExecutor(usable_cores()) as pool:
        built = list(pool.map(build, distinct))
    checked = {digest: _checked(each) for digest, each in zip(distinct, built, strict=True) if each is not None}
    found = {digest: _timed(each, shipped.get(digest)) for digest, each in checked.items() if each is not None}
    return {name: found[known[name][0]] for name in missed if known[name][0] in found}


def _is_applicable(schedule: schemas.ImportedSchedule) -> bool:
    """Return whether this version applies a schedule as it was certified (`VECTOR_MATH_VERSION`)."""
    return VECTOR_MATH_VERSION <= schedule.codegen_version <= CODEGEN_VERSION


def _is_schedulable(func: tvm.tirx.PrimFunc) -> bool:
    """Return whether the service would tune a function: shapes are static, and no access leaves its buffer."""
    if not all(isinstance(param.ty, tvm.tirx.buffer.BufferType) for param in func.params):
        return False
    extents = [extent for param in func.params for extent in buffer_shape(param)]
    return all(isinstance(extent, tvm.tirx.IntImm) for extent in extents) and not unproven(func)


def _built(
    func: tvm.tirx.PrimFunc,
    target: Target,
    make: Callable[[list[Any]], Candidate],
    first: list[Any] | None = None,
) -> _Built | None:
    """Build a function and the first choice for it, and call the former; None if there is no choice.

    The first choice is the trace ``first``, or else the prior's; ``make`` builds it.
    """
    workload = normal_form(func)
    known = [] if first is None else [first]
    choices = itertools.islice(itertools.chain(known, prior.choices(workload, target)), _TRIES)
    trace = next(choices, None)
    if trace is None:
        return None
    try:
        unscheduled = Candidate.built(workload, None, target)
        expected, seconds = unscheduled.results(random_arguments(workload))
    except _FAILURES:
        return None
    choice = None
    with contextlib.suppress(*_FAILURES):
        choice = make(trace)
    return _Built(workload, make, choices, trace, choice, unscheduled, expected, seconds)


def _checked(built: _Built) -> _Checked | None:
    """Return the first choice that can be built and agrees; None if none of `_TRIES` does.

    Not for a pool: each thread that runs a parallel loop starts threads, which wait busily after their work.
    """
    trace: list[Any] | None = built.trace
    choice, inputs = built.choice, random_arguments(built.workload)
    while trace is not None:
        with contextlib.suppress(*_FAILURES):
            choice = choice or built.make(trace)
            results, seconds = choice.results(inputs)
            if _agree(built.workload, results, built.expected):
                return _Checked(built.workload, trace, choice, built.unscheduled, (seconds, built.seconds))
        trace, choice = next(built.choices, None), None
    return None


def _agree(workload: tvm.IRModule, results: list[Any], expected: list[Any]) -> bool:
    rtol = [tolerance(str(buffer.dtype)) for buffer in workload["main"].params]
    return all(compare(*each).close for each in zip(results, expected, rtol, strict=True))


def random_arguments(workload: tvm.IRModule) -> list[Any]:
    """Return arrays for a call of a workload: random inputs, and outputs with values that are unlikely results.

    Raises:
        TypeError: NumPy has no dtype for an argument.
    """
    main = workload["main"]
    args = [
        _Argument(tuple(map(int, buffer.shape)), str(buffer.dtype), values)
        for buffer, values in zip(main.params, argument_values(main), strict=True)
    ]
    rng, bound = np.random.default_rng(0), index_bound(args)
    return [
        poison(each, DRAWS[0]) if output else random_array(each, DRAWS[0], rng, bound)
        for each, output in zip(args, write_only(main), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program of a workload: its function, and what packs the weight that it takes, if it takes one packed."""

    main: Callable[..., Any]
    packed: PackedWeight | None
    pack: Callable[..., Any] | None

    @classmethod
    def of(cls, function: BuiltFunction) -> Candidate:
        return cls(function.main, function.packed, None if function.packed is None else function.pack)

    @classmethod
    def built(cls, workload: tvm.IRModule, trace: list[Any] | None, target: Target) -> Candidate:
        """Build a workload with a trace, or unscheduled with None, for this measurement alone."""
        scheduled, packed = split(scheduled_module(workload, trace, target))
        module = compile_module(scheduled, target)
        return cls(module["main"], packed, None if packed is None else module[PACK])

    def results(self, inputs: list[Any]) -> tuple[list[Any], float]:
        """Call the program once. Return all arguments as it left them, and the seconds of the call."""
        tensors = [tvm.runtime.tensor(each) for each in inputs]
        arguments = self._arguments(tensors)
        began = time.perf_counter()
        self.main(*arguments)
        return [each.numpy() for each in tensors], time.perf_counter() - began

    def bound(self, inputs: list[Any]) -> Callable[[], None]:
        """Return a call on copies of the inputs, with the weight packed."""
        arguments = self._arguments([tvm.runtime.tensor(each) for each in inputs])
        return lambda: self.main(*arguments)

    def _arguments(self, tensors: list[Any]) -> list[Any]:
        if self.packed is None or self.pack is None:
            return tensors
        weight = tvm.runtime.empty(self.packed.shape, self.packed.dtype, tvm.cpu())
        self.pack(tensors[self.packed.argument], weight)
        huge_pages.move([weight])
        return [weight if place == self.packed.argument else each for place, each in enumerate(tensors)]


def _timed(checked: _Checked, imported: schemas.ImportedSchedule | None = None) -> Prediction:
    """Time both programs in turn, and keep the faster one. It may be what was imported for the function."""
    choice, unscheduled = checked.first
    is_open = unscheduled < _FAR_SLOWER * choice
    inputs = random_arguments(checked.workload)
    timed = [each.bound(inputs) for each in ([checked.choice, checked.unscheduled] if is_open else [checked.choice])]
    samples: list[list[float]] = [[_sample(call) for call in timed]]  # starts threads, and fills caches
    began = time.perf_counter()
    while len(samples) < 3 or time.perf_counter() - began < len(timed) * _TIMING_SECONDS:
        samples.append([_sample(call) for call in timed])
    choice, *others = map(min, zip(*samples[1:], strict=True))
    unscheduled = others[0] if others else unscheduled
    record_id = imported.record_id if imported is not None and imported.trace == checked.trace else None
    return Prediction(checked.trace if choice < unscheduled else None, 1e6 * choice, 1e6 * unscheduled, record_id)


def _sample(call: Callable[[], None]) -> float:
    """Return the mean seconds of a few calls."""
    began, calls, seconds = time.perf_counter(), 0, 0.0
    while seconds < _SAMPLE_SECONDS:
        call()
        calls += 1
        seconds = time.perf_counter() - began
    return seconds / calls
