"""A whole model as one program with its bests: built and timed where it runs, in a measurer's child.

Weights stayed with the user. Random ones stand in for them as constants, as `Client.compile` binds the real ones: so
that what a schedule packs once is packed before the calls.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import relax

from loopwright.codegen.arrays import Array, numpy_dtype, random_array
from loopwright.codegen.functions import used_prim_funcs
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import Values
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import normal_form, workload_digest
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.program.lowered_bounds import proving
from loopwright.codegen.program.lowering import lower, relax_symbols
from loopwright.codegen.program.schedule import scheduled_function, with_default_schedules
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.layout_free import input_count
from loopwright.codegen.weights.parameters import attach
from loopwright.codegen.weights.prepacking import fold_packing
from tuner.types import TensorInfo
from workers.clock import Clock
from workers.device.arguments import to_device, tvm_device
from workers.device.runner import Action, ProgramError, Runner
from workers.entry import Confine, entry
from workers.messages import Device, ModelProgram, ModelTimes

MAX_WEIGHT_BYTES = 2**30
"""They are in memory several times while they are bound and packed."""
MAX_UNTUNED_WEIGHT_BYTES = 2**28
"""Of a model that is in memory without schedules, too."""
SECONDS = 1.0
"""Of all loops, if there may be as many. Not tuned."""
LOOP_SECONDS = 0.02
"""Of one loop: so that most loops of a short model lie between the interruptions by other processes. Not tuned."""
LEAST_LOOPS, MOST_LOOPS = 5, 25
"""Not tuned."""
UNTUNED_SECONDS = 3.0
"""Of all loops of the model without schedules, unless `LEAST_LOOPS` take longer. Not tuned."""
LEAST_CALLS = 3
"""In one loop: so that a model that takes a second is timed in 20. Not tuned."""


class NotMeasured(Exception):
    """The model cannot be measured as one program; the message says why."""


@entry
def time_model(device: Device, model: ModelProgram, confine: Confine) -> Iterator[ModelTimes | Clock]:
    with Runner(lambda: WholeModel(device, model), confine) as runner:
        if runner.name:
            yield ModelTimes((), runner.name)
            return
        runner.load(0)
        both = _loads_untuned(runner, model)
        tuned, untuned = partial(runner.seconds, 0), partial(runner.seconds, 1)
        yield Clock.STOP
        with host_lock.quiet():
            yield Clock.START
            if both:
                samples = yield from in_turns(tuned, untuned)
                yield ModelTimes(tuple(samples[0]), None, tuple(samples[1]))
            else:
                yield ModelTimes(tuple(in_a_loop(tuned)), None)


def _loads_untuned(runner: Runner, model: ModelProgram) -> bool:
    """Load the model without schedules if it is to be timed. Return whether it is there."""
    if not model.untuned_build_seconds:
        return False
    try:
        runner.load(1)
    except ProgramError:
        return False
    return True


def in_turns(
    tuned: Callable[[int], float], untuned: Callable[[int], float]
) -> Generator[Clock, None, tuple[list[float], list[float]]]:
    """Return what `in_a_loop` returns of two programs, whose loops take turns: a busy machine is busy for both.

    A call before each loop, which does not count, brings back to the caches what the other program took their place
    of. A call of the second that takes longer than `LOOP_SECONDS` is a loop: caches make little difference to it.
    There may be fewer loops of it than of the first.
    """
    number, loops = _loops(tuned)
    call = untuned(0)
    calls = 0
    if call <= LOOP_SECONDS:
        call = untuned(1)
        calls = max(LEAST_CALLS, round(LOOP_SECONDS / max(call, 1e-9)))
    rounds = min(loops, max(LEAST_LOOPS, round(UNTUNED_SECONDS / (max(calls, 1) * max(call, 1e-9)))))
    first: list[float] = []
    second: list[float] = []
    for place in range(loops):
        yield Clock.START
        tuned(0)
        first.append(tuned(number))
        if place < rounds:
            if calls:
                untuned(0)
            second.append(untuned(calls))
    return first, second


def in_a_loop(seconds: Callable[[int], float]) -> list[float]:
    """Return the mean seconds of a call in each of several loops, as a user's process calls a model.

    Their median is to be what most calls of the user take, also where other processes interrupt some of them. A call
    for itself, after the process had stood still, takes up to a third longer: threads sleep, and caches have been used
    by others. ``seconds`` is like `Runner.seconds` of the program.
    """
    number, loops = _loops(seconds)
    return [seconds(number) for _ in range(loops)]


def _loops(seconds: Callable[[int], float]) -> tuple[int, int]:
    """Return the calls of a loop, and how many loops there are to be."""
    first = max(seconds(0), 1e-9)
    call = first if first > LOOP_SECONDS else seconds(1)  # without the cold caches and sleeping threads of the first
    number = max(LEAST_CALLS, round(LOOP_SECONDS / max(call, 1e-9)))
    loops = round(SECONDS / (number * max(call, 1e-9)))
    return number, min(max(loops, LEAST_LOOPS), MOST_LOOPS)


class WholeModel:
    """The model as a program of a runner, and after it, if there is time, without schedules.

    Its ``name`` is why it cannot be measured, or empty.
    """

    name = ""

    def __init__(self, device: Device, model: ModelProgram) -> None:
        self._device = tvm_device(device)
        self._machines: dict[int, relax.VirtualMachine] = {}
        hold = host_lock.SharedHold()
        started = time.monotonic()
        try:
            self._programs = [_built(model, MAX_WEIGHT_BYTES)]
            if 2 * (time.monotonic() - started) < model.untuned_build_seconds:
                with contextlib.suppress(Exception):  # whatever it is, the tuned model has its time
                    self._programs.append(_built(replace(model, traces={}), MAX_UNTUNED_WEIGHT_BYTES))
        except NotMeasured as error:
            self.name = str(error)
        finally:
            hold.close()

    def do(self, action: Action, position: int, number: int) -> float:
        if action is Action.LOAD:
            program, inputs = self._programs[position]
            self._machines[position] = relax.VirtualMachine(program, self._device)
            self._arguments = to_device(inputs, self._device)
            self._machines[position]["main"](*self._arguments)
            return 0.0
        machine = self._machines[position]
        if number:
            return float(machine.time_evaluator("main", self._device, number=number)(*self._arguments).mean)
        started = time.perf_counter()
        machine["main"](*self._arguments)
        self._device.sync()
        return time.perf_counter() - started


def _built(request: ModelProgram, most_bytes: int) -> tuple[relax.VMExecutable, list[Array]]:
    """Return the model's program and its inputs, which are the same each time. Raises NotMeasured."""
    mod, target = module_from_json(request.module_json), target_from(request.target_json)
    main = next((func for var, func in mod.functions_items() if str(var.name_hint) == "main"), None)
    if not isinstance(main, relax.Function):
        raise NotMeasured("it has no Relax function main")
    if relax_symbols(mod):
        raise NotMeasured("it has symbolic extents")
    first, infos = input_count(main), [_info(param) for param in main.params]
    weight_bytes = sum(math.prod(info.shape) * numpy_dtype(info.dtype).itemsize for info in infos[first:])
    if weight_bytes > most_bytes:
        raise NotMeasured(f"its weights take {weight_bytes / 2**20:,.0f} MiB, over {most_bytes // 2**20} MiB")
    rng = np.random.default_rng(0)
    weights = {
        str(param.name): tvm.runtime.tensor(_weight(info, rng))
        for param, info in zip(main.params[first:], infos[first:], strict=True)
    }
    load_intrinsics(target)
    mod = attach(lower(mod, target), weights)
    for var, func in used_prim_funcs(mod):
        workload = normal_form(func)
        trace = request.traces.get(workload_digest(workload))
        if trace is not None:
            mod[var] = scheduled_function(func, workload, json.loads(trace), target)
    with proving():  # what packs runs now
        folded = fold_packing(mod)
    return compile_module(with_default_schedules(folded, target), target), [_input(info, rng) for info in infos[:first]]


def _info(param: relax.Var) -> TensorInfo:
    shape = getattr(param.ty, "shape", None)
    if shape is None:
        raise NotMeasured(f"its input {param.name} is no tensor of a known shape")
    dtype = str(param.ty.dtype)
    # Integers of 32 and 64 bits are most often indices.
    values = Values.INDEX if numpy_dtype(dtype).itemsize >= 4 else Values.ANY
    return TensorInfo(tuple(map(int, shape)), dtype, values)


def _input(info: TensorInfo, rng: np.random.Generator) -> Array:
    # Functions keep inside of their buffers whatever indices they are given.
    return random_array(info, "normal", rng, 2)


def _weight(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Return values under which a deep model neither overflows nor fades: denormal numbers are slow."""
    array: Any = random_array(info, "normal" if len(info.shape) > 1 else "uniform", rng, 2)
    if len(info.shape) > 1 and not np.issubdtype(array.dtype, np.integer) and array.dtype != np.bool_:
        array *= array.dtype.type(1 / math.sqrt(max(1, array.size // info.shape[0])))
    return array
