"""What `Client.compile` does with a cache: loads what was compiled while the service knows the same bests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.applying.report import AppliedFunction, ApplyReport
from loopwright.caching.entry import Entry, Stored, StoredFunction
from loopwright.caching.keys import captured, key
from loopwright.codegen.host import threads
from loopwright.errors import CouldNotReach, ServiceUnavailable, UnsupportedModel
from loopwright.model import Model
from loopwright.packaging.load import PackagedModel
from loopwright.packaging.manifest import TensorSpec
from loopwright.results.best import Best
from loopwright.schemas import LookupAnswer

if TYPE_CHECKING:
    from loopwright.applying.lookup import Ask, LookedUp


@dataclass(frozen=True, slots=True)
class Built:
    """What was compiled on a miss, and the model's inputs."""

    executable: Any
    report: ApplyReport
    inputs: tuple[TensorSpec, ...]

    @classmethod
    def of(cls, executable: Any, model: LookedUp, report: ApplyReport) -> Built:
        """Return what was compiled of a lowered model.

        Raises:
            UnsupportedModel: the target is not this machine's CPU.
            ValueError: the module has no Relax function ``main``, or an input without a fixed shape.
        """
        from loopwright.applying.agreement import runs_here
        from loopwright.packaging.inputs import fixed_inputs

        if not runs_here(model.target):
            raise UnsupportedModel(
                f"a cache is for this machine's CPU, and the target is {model.target}; leave cache out, and use "
                "export_library() to keep what compile() returns"
            )
        return cls(executable, report, fixed_inputs(model.module))


def compiled(
    source: Model,
    params: Mapping[str, Any] | None,
    cache: str | os.PathLike[str],
    ask_once: Ask,
    make: Callable[[Model, Entry], None],
    **settings: Any,
) -> tuple[PackagedModel, ApplyReport]:
    """Return a compiled model and its report, from the cache if that is current.

    It is, while the service answers as it did when the model was compiled; without an answer it is taken, with a note.

    Args:
        source: the model.
        params: values that are bound to it by name.
        cache: the folder, which is made if it is not there.
        ask_once: asks the service for bests, but not again if there is no answer.
        make: compiles the model, in this process or in a child, and writes the entry.
        settings: what else decides the result, as JSON.

    Raises:
        PermissionError: others may write to the folder.
    """
    source = captured(source)
    entry = Entry(Path(cache).expanduser(), key(source, params, **settings))
    stored = entry.read()
    if stored is not None and (report := _current(stored, ask_once)) is not None:
        try:
            return entry.load(), report
        except OSError:  # another process has replaced it since
            pass
    make(source, entry)
    stored = entry.read()
    if stored is None:
        raise OSError(f"the model that was compiled is not in {cache} any more; do not clear a cache that is in use")
    return entry.load(), _report(stored, stored.answer)


def write(entry: Entry, built: Built, recorded: Recorded) -> None:
    """Write what was compiled, and what was asked for it."""
    from loopwright.packaging.exporting import export_library, write_threads

    def fill(folder: Path) -> Stored:
        export_library(built.executable, folder / "model.so")
        _copy_runtime(folder / "lib")
        write_threads(folder / "lib")
        return _stored(built, recorded)

    entry.write(fill)


class Recorded:
    """Asks the service, and remembers the last question and its answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.hashes: list[str] = []
        self.answer: LookupAnswer | None = None

    def __call__(self, hashes: list[str]) -> LookupAnswer:
        self.hashes = list(hashes)
        self.answer = self._ask(hashes)
        return self.answer


def _current(stored: Stored, ask: Ask) -> ApplyReport | None:
    """Return the report of a stored model; None if the service knows other bests by now."""
    if not stored.asked:
        return _report(stored, stored.answer)
    try:
        answer = ask(list(stored.asked))
    except (CouldNotReach, ServiceUnavailable) as error:
        return _report(stored, stored.answer, f"taken from the cache of {stored.created_at:%Y-%m-%d %H:%M}: {error}")
    same = stored.answer is None or answer.target == stored.answer.target
    return _report(stored, answer) if same and _records(answer) == _records(stored.answer) else None


def _records(answer: LookupAnswer | None) -> dict[str, str]:
    if answer is None:
        return {}
    imported = {each.workload_hash: each.record_id for each in answer.imported}
    return imported | {hit.workload_hash: hit.best.record_id for hit in answer.hits}


def _report(stored: Stored, answer: LookupAnswer | None, *notes: str) -> ApplyReport:
    bests = {hit.workload_hash: Best.of(hit.best) for hit in answer.hits} if answer is not None else {}
    functions = (
        AppliedFunction(each.name, each.outcome, bests.get(each.workload_hash or ""), each.prediction)
        for each in stored.functions
    )
    return ApplyReport(tuple(functions), agreement=stored.agreement, notes=(*stored.notes, *notes))


def _stored(built: Built, recorded: Recorded) -> Stored:
    report = built.report
    return Stored(
        created_at=datetime.now(UTC),
        threads=report.threads[-1] if report.threads else threads.usable_cores(),
        inputs=built.inputs,
        functions=tuple(
            StoredFunction(
                name=each.name,
                outcome=each.outcome,
                workload_hash=each.best.workload_hash if each.best else None,
                prediction=each.prediction,
            )
            for each in report.functions
        ),
        asked=tuple(recorded.hashes),
        answer=recorded.answer,
        agreement=report.agreement,
        notes=report.notes,
        files={},
    )


def _copy_runtime(folder: Path) -> None:
    from tvm.libinfo import find_libtvm_runtime

    folder.mkdir()
    shutil.copy(find_libtvm_runtime(), folder)
