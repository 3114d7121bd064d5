"""What `Client.compile` does with a cache: loads what was compiled while the service knows the same bests."""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.applying.report import summary_of
from loopwright.caching.entry import REPORT, Entry, Stored, own
from loopwright.caching.file_digests import FileDigests
from loopwright.caching.keys import captured, key
from loopwright.caching.stored_report import StoredReport, written
from loopwright.codegen.host import threads
from loopwright.compile_options import CompileOptions
from loopwright.errors import CouldNotReach, ServiceUnavailable, UnsupportedModel
from loopwright.extras import require_tvm
from loopwright.jobs.targets import as_text
from loopwright.model import Model
from loopwright.packaging.load import PackagedModel
from loopwright.service_bests import KnownRecords, ServiceBests
from loopwright.session import config
from loopwright.shapes.plan import is_portfolio

if TYPE_CHECKING:
    from loopwright.applying.lookup import Ask
    from loopwright.applying.report import ApplyReport
    from loopwright.packaging.manifest import TensorSpec
    from loopwright.schemas import LookupAnswer


def compiled(
    source: Model, options: CompileOptions, cache: str | os.PathLike[str], bests: ServiceBests
) -> tuple[PackagedModel, StoredReport]:
    """Return a compiled model and its report, from the cache if that is current.

    It is, while the service knows the same bests as when the model was compiled; without an answer it is taken, with a
    note. Otherwise the model is compiled, in a child if that can read it. The service is asked while the model is
    loaded.

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
    source, folder = captured(source), own(Path(cache).expanduser())
    entry = Entry(folder, key(source, options.params, FileDigests(folder), **_settings(options, bests)))
    if (found := _found(entry, options, bests)) is not None:
        return found
    from loopwright.caching import child

    if child.takes(source, options.params):
        environment = config.environment(bests.transport.endpoint)
        child.compile_in_child(child.Work(source, options, entry.path), environment)
    else:
        write(source, options, entry, bests)
    stored = entry.read()
    if stored is None:
        raise OSError(f"the model that was compiled is not in {cache} any more; do not clear a cache that is in use")
    return entry.load(), StoredReport(stored.summary, entry.report())


def _found(entry: Entry, options: CompileOptions, bests: ServiceBests) -> tuple[PackagedModel, StoredReport] | None:
    """Return the compiled model of an entry and its report; None if there is none, or if it is not current."""
    stored = entry.read()
    if stored is None:
        return None
    with ThreadPoolExecutor(1) as pool, contextlib.suppress(OSError):  # another process has replaced the entry since
        notes = pool.submit(_notes_if_current, stored, options, bests)
        loaded, content = entry.load(), entry.report()
        if (current := notes.result()) is not None:
            return loaded, StoredReport(stored.summary, content, current)
    return None


def write(source: Model, options: CompileOptions, entry: Entry, bests: ServiceBests) -> None:
    """Compile a model in this process, and write it to a cache, with what was asked for it.

    Raises:
        UnsupportedModel: the target is not this machine's CPU.
        ValueError: the module has no Relax function ``main``, or an input without a fixed shape.
    """
    require_tvm()
    from loopwright.applying.agreement import runs_here
    from loopwright.compiler import Compiler
    from loopwright.packaging.exporting import export_apart, write_threads
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
        mapped = export_apart(built.executable, folder)
        _copy_runtime(folder / "lib")
        write_threads(folder / "lib")
        (folder / REPORT).write_text(written(built.report, recorded.answer), encoding="utf-8")
        return _stored(built.report, inputs, mapped, recorded)

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


def _notes_if_current(stored: Stored, options: CompileOptions, bests: ServiceBests) -> tuple[str, ...] | None:
    """Return what there is to say of a stored model; None if the service knows other bests by now."""
    if not stored.asked or options.lock is not None:  # a lock is in the key
        return ()
    try:
        known = bests.records(stored.asked, options.target, is_instant=options.tune is not None)
    except (CouldNotReach, ServiceUnavailable) as error:
        return (f"taken from the cache of {stored.created_at}: {error}",)
    # Without an answer, what was compiled knew no records, and its target was this machine's CPU.
    same = known == stored.known if stored.known is not None else not known.records
    return () if same else None


def _stored(
    report: ApplyReport, inputs: tuple[TensorSpec, ...], mapped: list[dict[str, Any]], recorded: _Recorded
) -> Stored:
    return Stored(
        created_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        threads=report.threads[-1] if report.threads else threads.usable_cores(),
        inputs=[{"name": each.name, "shape": each.shape, "dtype": each.dtype} for each in inputs],
        mapped=mapped,
        asked=recorded.hashes,
        known=None if recorded.answer is None else KnownRecords.of(recorded.answer),
        summary=summary_of(report),
        files={},
    )


def _copy_runtime(folder: Path) -> None:
    from tvm.libinfo import find_libtvm_runtime

    folder.mkdir()
    shutil.copy(find_libtvm_runtime(), folder)
