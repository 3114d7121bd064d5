"""What `Client.compile` does with a cache: loads what was compiled while the service knows the same bests."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.applying.report import AppliedFunction, ApplyReport
from loopwright.caching import child
from loopwright.caching.entry import Entry, Stored, StoredFunction
from loopwright.caching.keys import captured, key
from loopwright.codegen.host import threads
from loopwright.compile_options import CompileOptions
from loopwright.errors import CouldNotReach, ServiceUnavailable, UnsupportedModel
from loopwright.extras import require_tvm
from loopwright.jobs.targets import as_text
from loopwright.model import Model
from loopwright.packaging.load import PackagedModel
from loopwright.packaging.manifest import TensorSpec
from loopwright.results.best import Best
from loopwright.schemas import LookupAnswer
from loopwright.service_bests import ServiceBests
from loopwright.session import config
from loopwright.shapes.plan import is_portfolio

if TYPE_CHECKING:
    from loopwright.applying.lookup import Ask


def compiled(
    source: Model, options: CompileOptions, cache: str | os.PathLike[str], bests: ServiceBests
) -> tuple[PackagedModel, ApplyReport]:
    """Return a compiled model and its report, from the cache if that is current.

    It is, while the service answers as it did when the model was compiled; without an answer it is taken, with a note.
    Otherwise the model is compiled, in a child if that can read it.

    Args:
        source: the model.
        options: the options of the compilation.
        cache: the folder, which is made if it is not there.
        bests: the bests of the service.

    Raises:
        PermissionError: others may write to the folder.
        ValueError: the model has state, or many values of an extent; else as `write`.
    """
    if source.state is not None or is_portfolio(source.shapes):
        raise ValueError("a cache is for models without state that have one shape; leave out cache, state or shapes")
    source = captured(source)
    entry = Entry(Path(cache).expanduser(), key(source, options.params, **_settings(options, bests)))
    stored = entry.read()
    if stored is not None and (report := _current(stored, options.ask(bests, is_repeated=False))) is not None:
        try:
            return entry.load(), report
        except OSError:  # another process has replaced it since
            pass
    if child.takes(source, options.params):
        environment = config.environment(bests.transport.endpoint)
        child.compile_in_child(child.Work(source, options, entry.path), environment)
    else:
        write(source, options, entry, bests)
    stored = entry.read()
    if stored is None:
        raise OSError(f"the model that was compiled is not in {cache} any more; do not clear a cache that is in use")
    return entry.load(), _report(stored, stored.answer)


def write(source: Model, options: CompileOptions, entry: Entry, bests: ServiceBests) -> None:
    """Compile a model in this process, and write it to a cache, with what was asked for it.

    Raises:
        UnsupportedModel: the target is not this machine's CPU.
        ValueError: the module has no Relax function ``main``, or an input without a fixed shape.
    """
    require_tvm()
    from loopwright.applying.agreement import runs_here
    from loopwright.compiler import Compiler
    from loopwright.packaging.exporting import export_library, write_threads
    from loopwright.packaging.inputs import fixed_inputs

    recorded = _Recorded(options.ask(bests))
    built = Compiler(bests).build(source, options, recorded)
    if not runs_here(built.model.target):
        raise UnsupportedModel(
            f"a cache is for this machine's CPU, and the target is {built.model.target}; leave cache out, and use "
            "export_library() to keep what compile() returns"
        )
    inputs = fixed_inputs(built.model.module)

    def fill(folder: Path) -> Stored:
        export_library(built.executable, folder / "model.so")
        _copy_runtime(folder / "lib")
        write_threads(folder / "lib")
        return _stored(built.report, inputs, recorded)

    entry.write(fill)


def _settings(options: CompileOptions, bests: ServiceBests) -> dict[str, Any]:
    """Return what decides the result beside the model, as JSON."""
    known = {"url": bests.transport.endpoint.url} if options.lock is None else {"lock": options.lock.digest}
    return {"target": as_text(options.target), "verify": options.verify, "tune": options.tune, **known}


class _Recorded:
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


def _stored(report: ApplyReport, inputs: tuple[TensorSpec, ...], recorded: _Recorded) -> Stored:
    return Stored(
        created_at=datetime.now(UTC),
        threads=report.threads[-1] if report.threads else threads.usable_cores(),
        inputs=inputs,
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
