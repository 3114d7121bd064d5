"""A graph at one shape of its inputs: how PyTorch runs it, and a program that may take its place."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from loopwright.client import Client
from loopwright.errors import LoopwrightError, NotLocked, UnsupportedModel, first_line
from loopwright.locking.lock import Lock
from loopwright.model import Tune as Predicting
from loopwright.session import config
from loopwright.torch.saying import say_once

Tune = Literal["background", "wait", "instant", "never"]
State = Literal["pytorch", "tuning", "compiled"]

_ROUNDS = 5
"""Times that PyTorch and then a program run before one is chosen."""
_REST_SECONDS = 0.15
"""Before each of them: threads of PyTorch and of TVM wait busily for 0.1 s after their work, on the other's cores."""
_ALIGNMENT = 64
"""Bytes, of the tensors that TVM takes."""
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}
"""Of the largest value of an output; other dtypes have to be equal."""

_building = threading.Lock()
# A thread that builds is not cut off by the end of the process.
atexit.register(_building.acquire)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where programs come from, and what is done about functions of which nothing is known."""

    client: Client
    tune: Tune
    budget: dict[str, Any]
    lock: Lock | None
    """What programs are built with in place of what the client's service knows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a graph runs for one shape of its inputs.

    ``tuning`` is as ``pytorch``, and a job goes on. ``reason`` says why it is not compiled; ``pytorch_us`` and
    ``compiled_us`` are the shortest of a few calls, once both have run.
    """

    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the inputs."""
    state: State
    """How the graph runs."""
    reason: str | None = None
    """Why it is not compiled; None if it is."""
    pytorch_us: float | None = None
    """Shortest of a few calls of PyTorch's program, in microseconds; None until it ran."""
    compiled_us: float | None = None
    """Shortest of a few calls of the compiled program, in microseconds; None until it ran."""
    job_id: str | None = None
    """The job that tunes its functions; None if there is none."""


class GraphVariant:
    """A program for one shape of a graph's inputs. `first` is its first call; for later calls, call the variant."""

    def __init__(self, module: Any, weights: Sequence[int], args: list[Any], tuning: Tuning) -> None:
        """Hold the arguments of the first call. ``weights`` are the positions of arguments that never change."""
        self._module, self._tuning, self._args = module, tuning, args
        self.changed: tuple[int, ...] = ()
        """Positions of the arguments that the graph changes in place, such as those of a cache."""
        self._bind(args, weights)
        self.exported: Any = None
        """The program of the graph as PyTorch exports it; None if it cannot be compiled."""
        self._outputs: tuple[Any, ...] = ()
        """What is no tensor among the outputs; None for tensors."""
        self._sources: dict[int, int] = {}
        """Positions of outputs that are arguments, and of these arguments."""
        self._candidate: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None
        self._program: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None

    def first(self) -> Any:
        """Run PyTorch's program, and begin to make a faster program for later calls."""
        args, self._args = self._args, []
        before = [_state(arg) if n in self._places else _version(arg) for n, arg in enumerate(args)]
        outputs = self._module(*args)
        self.changed = tuple(n for n, arg in enumerate(args) if _is_changed(arg, before[n]))
        self._bind(args, [n for n in self._weights if n not in self.changed])
        self._outputs = tuple(None if isinstance(each, torch.Tensor) else each for each in outputs)
        places = {id(args[n]): n for n in reversed(range(len(args))) if isinstance(args[n], torch.Tensor)}
        self._sources = {place: places[id(each)] for place, each in enumerate(outputs) if id(each) in places}
        try:
            if any(isinstance(arg, torch.Tensor) and arg.device.type != "cpu" for arg in args):
                raise UnsupportedModel("its tensors are not on the CPU")
            if not any(isinstance(each, torch.Tensor) for each in outputs):
                raise UnsupportedModel("it computes no tensor")
            self.exported = self._export(args)
            self._begin()
        except NotLocked:
            raise
        except (LoopwrightError, RuntimeError) as error:
            if isinstance(error, UnsupportedModel):
                self.exported = None
            self._give_up(first_line(error))
        return outputs

    def __call__(self, args: Sequence[Any]) -> Any:
        if self._candidate is not None:
            return self._tried(args)
        if self._program is None:
            return self._module(*args)
        return self._program(args)

    def _bind(self, args: Sequence[Any], weights: Sequence[int]) -> None:
        """Take these arguments for weights, and all other tensors for inputs."""
        self._weights = weights
        self._held = {id(args[n]) for n in weights}
        self._places = [n for n, arg in enumerate(args) if n not in weights and isinstance(arg, torch.Tensor)]
        self.outcome = Outcome(tuple(tuple(args[n].shape) for n in self._places), "pytorch")

    def uses(self, weights: set[int]) -> bool:
        return not weights.isdisjoint(self._held)

    def renew(self) -> int:
        """Make the program again from the bests that the service knows now, and return the number of programs made."""
        if self.exported is None:
            return 0
        self._compile()
        return 1

    def _export(self, args: list[Any]) -> Any:
        module, places, changed, sources = self._module, self._places, self.changed, self._sources

        class Bound(torch.nn.Module):
            """The graph with all arguments but its inputs bound.

            It returns the tensors among its outputs that are no arguments, and then what it would have changed
            arguments to.
            """

            def __init__(self) -> None:
                super().__init__()
                for n, arg in enumerate(args):
                    if n not in places and isinstance(arg, torch.Tensor):
                        self.register_buffer(f"bound_{n}", arg.detach())

            def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
                given = dict(zip(places, inputs, strict=True))
                given |= {n: given[n].clone() for n in changed}
                bound = [given[n] if n in given else getattr(self, f"bound_{n}", arg) for n, arg in enumerate(args)]
                found = [each for place, each in enumerate(module(*bound)) if place not in sources]
                return (*(each for each in found if isinstance(each, torch.Tensor)), *(given[n] for n in changed))

        from loopwright.frontends.torch import export

        with torch.inference_mode(False), torch.no_grad():
            return export("the graph", Bound().eval(), tuple(args[n].detach().contiguous() for n in places))

    def _begin(self) -> None:
        client, tune, budget = self._tuning.client, self._tuning.tune, self._tuning.budget
        if self._compile() == 0 or tune in ("instant", "never") or self._tuning.lock is not None:
            return
        job = client.submit(self.exported, name="torch.compile", **budget)
        self.outcome = replace(self.outcome, state="tuning", job_id=job.id)
        if tune == "wait":
            job.wait(progress=False)
            self._compile()
        else:
            threading.Thread(target=self._wait, args=(job,), daemon=True, name=f"loopwright {job.id}").start()

    def _wait(self, job: Any) -> None:
        try:
            job.wait(progress=False)
            with _building:
                self._compile()
        except Exception as error:
            self._give_up(f"its job {job.id} failed: {first_line(error)}")

    def _compile(self) -> int:
        """Make a program with the known bests for the next call to try; return the number of functions without one."""
        import tvm
        from tvm import relax

        from loopwright.applying import apply as applying
        from loopwright.applying.assembling import assembled, functions_in
        from loopwright.codegen.program.in_place import write_in_place

        predicting: Predicting | None = "instant" if self._tuning.tune == "instant" else None
        known = self._tuning.client.look_up(self.exported, tune=predicting, lock=self._tuning.lock)
        report = applying.report_on(known)
        if report.hits or report.predictions:
            if self.changed:
                changed = [self._places.index(n) for n in self.changed]
                applied = write_in_place(applying.applied(known, report), known.module, changed)
                built = applying.build(applied, known.target)
            else:
                built, _ = assembled(known, functions_in(config.functions_folder()))
            run = relax.VirtualMachine(built, tvm.cpu())["main"]
            self._candidate = lambda args: self._ran(run, args)
        else:
            self.outcome = replace(self.outcome, reason="none of its functions is tuned")
        return len(report.misses)

    def _ran(self, run: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        returned = run(*(_as_tvm(args[n]) for n in self._places))
        tensors = [torch.from_dlpack(each) for each in ([returned] if hasattr(returned, "__dlpack__") else returned)]
        count = len(tensors) - len(self.changed)
        for n, new in zip(self.changed, tensors[count:], strict=True):
            if new.data_ptr() != args[n].data_ptr():  # it was not written in place
                args[n].copy_(new)
        found = iter(tensors[:count])
        return tuple(
            args[self._sources[place]] if place in self._sources else next(found) if each is None else each
            for place, each in enumerate(self._outputs)
        )

    def _copied(self, args: Sequence[Any]) -> list[Any]:
        """Return arguments with copies of those that a call changes."""
        return [arg.clone() if n in self.changed else arg for n, arg in enumerate(args)]

    def _tried(self, args: Sequence[Any]) -> Any:
        """Run PyTorch and then a candidate, and keep it if it computes the same and is faster."""
        candidate, self._candidate = self._candidate, None
        assert candidate is not None
        current = self._program or (lambda given: self._module(*given))
        times: tuple[list[float], list[float]] = ([], [])
        before = self._copied(args)
        expected = self._module(*args)
        try:
            for run, seconds in zip((current, candidate), times, strict=True):
                time.sleep(_REST_SECONDS)
                for _ in range(_ROUNDS):
                    given = self._copied(before)
                    began = time.perf_counter()
                    outputs = run(given)
                    seconds.append(time.perf_counter() - began)
        except Exception as error:
            self._give_up(f"its program failed: {first_line(error)}")
            return expected
        same = all(_agree(given[n], args[n]) for n in self.changed)
        if not same or not all(map(_agree, outputs, expected)):
            self._give_up("its program does not compute the same: it draws random numbers, or sums in another order")
            return expected
        was, now = (1e6 * min(seconds) for seconds in times)
        if self._program is None:
            self.outcome = replace(self.outcome, pytorch_us=was)
        if _is_better(now, was):
            self._program = candidate
            self.outcome = replace(self.outcome, state="compiled", compiled_us=now, reason=None)
        elif self._program is None:
            self.outcome = replace(self.outcome, state="pytorch", compiled_us=now, reason="PyTorch is faster")
        return expected

    def _give_up(self, reason: str) -> None:
        if self._program is None:
            self.outcome = replace(self.outcome, state="pytorch", reason=reason)
        say_once(reason)


def _is_better(now: float, was: float) -> bool:
    return now < was


def _as_tvm(tensor: torch.Tensor) -> Any:
    """Return a tensor of TVM in the same memory, or in a copy if TVM cannot take that memory."""
    import tvm

    tensor = tensor.detach().contiguous()
    return tvm.runtime.from_dlpack(tensor.clone() if tensor.data_ptr() % _ALIGNMENT else tensor)


def _agree(value: Any, expected: Any) -> bool:
    if not isinstance(expected, torch.Tensor):
        return bool(value == expected)
    if value.shape != expected.shape or value.dtype != expected.dtype:
        return False
    if expected.dtype not in _TOLERANCE:
        return torch.equal(value, expected)
    finite = expected[expected.isfinite()]
    scale = finite.abs().max().item() if finite.numel() else 0.0
    return torch.allclose(value, expected, rtol=0, atol=_TOLERANCE[expected.dtype] * scale, equal_nan=True)


def _version(arg: Any) -> int:
    return arg._version if isinstance(arg, torch.Tensor) and not arg.is_inference() else 0


def _state(arg: Any) -> Any:
    """Return what differs after a write to a tensor: its version; or a copy, if it has none."""
    return arg.clone() if isinstance(arg, torch.Tensor) and arg.is_inference() else _version(arg)


def _is_changed(arg: Any, state: Any) -> bool:
    return not torch.equal(arg, state) if isinstance(state, torch.Tensor) else _version(arg) != state
