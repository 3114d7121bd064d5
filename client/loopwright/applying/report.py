"""The report of `Client.apply` and `Client.compile` on each function."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from loopwright.codegen.host import threads as runtime_threads
from loopwright.results.tables import titled
from loopwright.results.units import ratio

if TYPE_CHECKING:
    from loopwright.results.best import Best

logger = logging.getLogger("loopwright")

Outcome = Literal["tuned", "baseline", "predicted", "missed"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the prior, or an imported record, would do about a function of which no best is known, as it ran on this
    machine: not certified.

    Both times are the best of a few calls, taken by this process, and the results agreed on one set of random inputs.
    """

    trace: list[Any] | None
    """The schedule; None if the unscheduled program was faster."""
    us: float
    """One call of the scheduled program, in microseconds."""
    unscheduled_us: float
    """One call of the unscheduled program, in microseconds."""
    imported: str | None = None
    """Id of the imported record whose schedule it is; None if a rule chose it."""


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """The outcome for one PrimFunc: ``tuned`` (a schedule was applied), ``baseline`` (known: TVM's own default is the
    best), ``predicted`` (the prior's choice was applied) or ``missed`` (nothing is known for the target, or the prior's
    choice was slower). ``best`` is None exactly when it was predicted or missed."""

    name: str
    """Name of the function."""
    outcome: Outcome
    """``tuned``: a certified schedule was applied. ``baseline``: the unscheduled program is the best. ``predicted``: no
    best is known, and a schedule was applied that is not certified. ``missed``: no best is known, and it is
    unscheduled. If that was faster than a prediction, it is compiled as it was timed, else as TVM does by default."""
    best: Best | None
    """Its best; None if none is known."""
    prediction: Prediction | None = None
    """What the prior would do about it; None if its best is known, or nothing was predicted."""
    source: str | None = None
    """Where the model calls it: modules of PyTorch or nodes of ONNX; None if that is not known."""

    def of(self, shape: str) -> AppliedFunction:
        """Return this function with a name that contains the shape, for a model with several shapes."""
        return replace(self, name=f"{self.name} [{shape}]")


@dataclass(frozen=True, slots=True)
class Served:
    """The outcome for one bucket of a portfolio: calls with ``smallest`` to ``extent`` run its tuned variant, padded;
    none do if ``smallest`` is None, because no certificate says that they would be faster."""

    extent: int
    """The extent of the bucket."""
    smallest: int | None
    """The smallest extent that its variant is called with; None: it is never called."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One call of the compiled program gave what the model's own framework gives, in dtypes, shapes and values."""

    reference: str
    """What ran the model: ``PyTorch`` or ``ONNX Runtime``."""
    max_rel_error: float
    """The largest difference, as a share of the largest value of its output."""
    tolerance: float
    """The difference that is allowed for the model's precision; integers and booleans are equal."""
    special: str | None = None
    """How a second call differs, on inputs with NaN, infinities and zeros of both signs; empty if it does not, and None
    if there was none."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report tells users when a model is compiled."""

    text: str
    """The report in words."""
    has_misses: bool
    """Whether something was missed."""
    special: str
    """How results differ on inputs with NaN and infinities; empty if they do not."""
    threads: Sequence[int]
    """The numbers of threads with which the bests were certified."""

    def log(self) -> None:
        """Tell it, as `ApplyReport.log` does."""
        logger.log(logging.WARNING if self.has_misses else logging.INFO, "%s", self.text)
        if self.special:
            logger.warning("with NaN or infinities in the inputs, %s", self.special)
        here = runtime_threads.configured()
        if here is None or not self.threads or here in self.threads:
            return
        numbers = " or ".join(map(str, self.threads))
        text = f"the bests were certified with {numbers} threads, and this process runs them with {here}"
        cores = runtime_threads.usable_cores()
        if here == cores:
            logger.info("%s, one for each core that it may use: expect other times than the certified ones", text)
        else:
            logger.warning(
                "%s, as its environment says; for the certified times, set %s=%d before the process starts",
                text,
                runtime_threads.NUM_THREADS,
                min(self.threads[-1], cores),
            )


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The outcome for each function, in order of name."""

    functions: tuple[AppliedFunction, ...]
    """Each PrimFunc, in order of name."""
    symbol: str = ""
    """The symbolic extent of a module that `Client.compile` built for a portfolio."""
    served: tuple[Served, ...] = ()
    """What became of its buckets. Calls with other extents run untuned."""
    agreement: Agreement | None = None
    """The comparison of the compiled program with the model itself; None if there was none (see `Client.compile`)."""
    notes: tuple[str, ...] = ()
    """What else there is to know: for example, that convolutions keep their layout, and why."""

    @property
    def hits(self) -> tuple[AppliedFunction, ...]:
        """The functions that the service knows: tuned, or best as they are."""
        return tuple(function for function in self.functions if function.best is not None)

    @property
    def misses(self) -> tuple[AppliedFunction, ...]:
        """The functions for which no best is known, and which are unscheduled."""
        return tuple(function for function in self.functions if function.outcome == "missed")

    @property
    def predictions(self) -> tuple[AppliedFunction, ...]:
        """The functions for which no best is known, and which have a schedule that is not certified."""
        return tuple(function for function in self.functions if function.outcome == "predicted")

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads with which the bests for CPUs were certified, the smallest first; usually one."""
        targets = [function.best.target for function in self.functions if function.best]
        return tuple(sorted({target["num-cores"] for target in targets if "num-cores" in target}))

    def log(self) -> None:
        """Tell it: as a warning where something was missed, or where this process runs the bests with other threads."""
        summary_of(self).log()

    def __str__(self) -> str:
        predicted = f", and {len(self.predictions)} are predicted" if self.predictions else ""
        lines = [f"{len(self.hits)} of {len(self.functions)} functions have a certified best{predicted}"]
        for function in self.functions:
            gain = (
                f", {ratio(function.best.speedup, function.best.certificate.interval)} over the baseline"
                if function.best
                else ""
            )
            tf32 = ", in TF32" if function.best and function.best.math == "tf32" else ""
            packs = ", its weight packed once" if function.best and function.best.packs_weight else ""
            how = f"{gain}{tf32}{packs}{_predicted(function.prediction)}"
            lines.append(f"  {titled(function)}: {function.outcome}{how}")
        for each in self.served:
            if each.smallest is None:
                lines.append(f"  {self.symbol}={each.extent}: untuned, since no certificate says that tuned is faster")
            elif each.smallest < each.extent:
                lines.append(f"  {self.symbol}={each.smallest} to {each.extent}: padded to {each.extent}")
            else:
                lines.append(f"  {self.symbol}={each.extent}: tuned for")
        lines += [f"  {note}" for note in self.notes]
        if self.agreement is not None:
            error, tolerance = self.agreement.max_rel_error, self.agreement.tolerance
            lines.append(f"  as {self.agreement.reference} computes it: error {error:.1e}, {tolerance:g} allowed")
            if self.agreement.special is not None:
                lines.append(f"  with special values: {self.agreement.special or 'the same'}")
        if self.served:
            lines.append(f"  other {self.symbol}: untuned")
        return "\n".join(lines)


def summary_of(report: ApplyReport) -> Summary:
    """Return what a report tells when a model is compiled."""
    special = report.agreement.special if report.agreement is not None else None
    return Summary(str(report), bool(report.misses), special or "", report.threads)


def _predicted(prediction: Prediction | None) -> str:
    """Return what follows a function's outcome for a prediction; nothing without one."""
    if prediction is None:
        return ""
    if prediction.trace is None:
        return ", since unscheduled was faster here than predicted"
    source = "not certified" if prediction.imported is None else f"imported ({prediction.imported}), not certified here"
    return f", {prediction.unscheduled_us / prediction.us:.3g}x over the baseline here, {source}"
