"""Scheduled functions, each compiled once by itself: object code in a folder, and what of it is loaded.

A function's code follows from its digest, its schedule, the target, and the versions of TVM and of this package. So any
model that has the function takes the same object, whatever the function is called there, and a prediction that was
checked and timed is what the model then runs. Code in the folder runs in this process: only its owner may write there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from loopwright.codegen.host.own_folder import NotOurs, own_folder
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.linking import is_foreign, link, linker
from loopwright.codegen.program.schedule import scheduled_function
from loopwright.codegen.target import canonical_target
from loopwright.codegen.versions import CODEGEN_VERSION, installed
from loopwright.codegen.weights.packed_weight import PACK, PackedWeight
from loopwright.codegen.weights.prepacking import split

_OBJECT, _LIBRARY, _ABOUT = "code.o", "code.so", "about.json"
_UNFINISHED = ".new-"
"""How the names of folders begin that are being written."""
_LEFT_OVER_SECONDS = 3600.0
"""Longer than any function takes to be written."""
_MOST_LOADED = 1024
"""Functions of which a process keeps the code, whatever runs it. Not tuned."""
_MOST_STORED = 8192
"""Functions in a folder; one takes some 30 KB, and a model has some tens. Not tuned."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the code of a function for a target: the function, by its digest, and its schedule.

    ``trace`` and ``exact_math`` are as for `scheduled_function`; ``is_noalias`` is whether its buffers do not overlap.
    """

    digest: str
    trace: list[Any] | None
    exact_math: bool = False
    is_noalias: bool = True

    @classmethod
    def of(cls, func: tvm.tirx.PrimFunc, digest: str, trace: list[Any] | None, *, exact_math: bool = False) -> Recipe:
        return cls(digest, trace, exact_math, bool((func.attrs or {}).get("tirx.noalias", True)))

    def symbol(self, target: Target) -> str:
        """Return the name of the compiled function: the same for the same code, and for no other."""
        own = [self.digest, self.trace, self.exact_math, self.is_noalias]
        parts = [own, canonical_target(target), CODEGEN_VERSION, _installation()]
        return f"loopwright_{hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]}"


@dataclass(frozen=True, slots=True)
class BuiltFunction:
    """A compiled function ``symbol`` of a library, which takes a weight packed by the library's ``pack`` if it says so.

    ``exported`` is what a library of a whole model is linked from. It is the same module if there is no linker.
    """

    symbol: str
    packed: PackedWeight | None
    library: tvm.runtime.Module
    exported: tvm.runtime.Module

    @property
    def pack_symbol(self) -> str:
        return f"{self.symbol}_{PACK}"

    @property
    def main(self) -> Any:
        return self.library[self.symbol]

    @property
    def pack(self) -> Any:
        return self.library[self.pack_symbol]


class BuiltFunctions:
    """The compiled functions of a process, and of a folder. Several threads and processes may use it at once."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder, which is made if need be. Without one, or if others may write to it, nothing is kept there."""
        self._folder: Path | None = None
        if folder is not None:
            with contextlib.suppress(OSError, NotOurs):
                folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._folder = own_folder(folder)
        self._loaded: OrderedDict[str, BuiltFunction] = OrderedDict()
        self._lock = threading.Lock()

    def built(self, func: tvm.tirx.PrimFunc, recipe: Recipe, target: Target) -> BuiltFunction:
        """Return a function as a recipe has it: loaded already, from the folder, or compiled now.

        Args:
            func: the function without a schedule, whose digest is the recipe's.
            recipe: its schedule.
            target: an llvm target of this machine.

        Raises:
            RuntimeError, ValueError: the trace does not fit, or the scheduled function may leave its buffers.
        """
        symbol = recipe.symbol(target)
        with self._lock:
            found = self._loaded.get(symbol)
        if found is None:
            found = self._read(symbol) or self._compiled(func, recipe, symbol, target)
        with self._lock:
            self._loaded[symbol] = found
            self._loaded.move_to_end(symbol)
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
        return found

    def _compiled(self, func: tvm.tirx.PrimFunc, recipe: Recipe, symbol: str, target: Target) -> BuiltFunction:
        explicit = func.with_attr("tirx.noalias", recipe.is_noalias)
        scheduled = scheduled_function(explicit, normal_form(func), recipe.trace, target, exact_math=recipe.exact_math)
        parts, packed = split(tvm.IRModule({"main": scheduled.with_attr("global_symbol", "main")}))
        names = {"main": symbol, PACK: f"{symbol}_{PACK}"}
        named = {names[str(var.name_hint)]: part for var, part in parts.functions.items()}
        module = tvm.IRModule({name: part.with_attr("global_symbol", name) for name, part in named.items()})
        library = compile_module(module, target)
        kept = self._written(symbol, packed, library, target)
        return kept or BuiltFunction(symbol, packed, library, library)

    def _read(self, symbol: str) -> BuiltFunction | None:
        """Return a function from the folder; None if it is not there, or damaged."""
        if self._folder is None or not (entry := self._folder / symbol).is_dir():
            return None
        try:
            about = json.loads((entry / _ABOUT).read_text(encoding="utf-8"))
            if about["sha256"] != _digests(entry):
                raise ValueError(f"{entry} is damaged")
            packed = None if about["packed"] is None else PackedWeight(**about["packed"])
            found = _loaded(entry, symbol, packed)
            os.utime(entry)
        except (OSError, ValueError, TypeError, LookupError, RuntimeError):
            shutil.rmtree(entry, ignore_errors=True)  # or else what is compiled now could not take its place
            return None
        return found

    def _written(
        self, symbol: str, packed: PackedWeight | None, library: tvm.runtime.Module, target: Target
    ) -> BuiltFunction | None:
        """Write a compiled function to the folder, and load it from there; None if that cannot be done."""
        program = None if self._folder is None or is_foreign(target) else linker(target)
        if self._folder is None or program is None:
            return None
        made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        try:
            library.write_to_file(str(made / _OBJECT))
            link(program, [str(made / _OBJECT)], str(made / _LIBRARY), "-z", "now")
            about = {"packed": None if packed is None else asdict(packed), "sha256": _digests(made)}
            (made / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
            found = _loaded(made, symbol, packed)  # fails if a symbol is nowhere in the process
            with contextlib.suppress(OSError):  # another process was first
                made.rename(self._folder / symbol)
            self._remove_oldest()
        except (OSError, subprocess.CalledProcessError, RuntimeError):
            return None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return found

    def _remove_oldest(self) -> None:
        """Remove what was not used for the longest time, if there is too much, and what killed processes left."""
        assert self._folder is not None
        used: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                used.append((path.stat().st_mtime, path))
        old = time.time() - _LEFT_OVER_SECONDS
        left = [path for when, path in used if path.name.startswith(_UNFINISHED) and when < old]
        finished = sorted((each for each in used if not each[1].name.startswith(_UNFINISHED)), reverse=True)
        for path in [*left, *(path for _, path in finished[_MOST_STORED:])]:
            shutil.rmtree(path, ignore_errors=True)


def _loaded(entry: Path, symbol: str, packed: PackedWeight | None) -> BuiltFunction:
    names = [symbol] if packed is None else [symbol, f"{symbol}_{PACK}"]
    library = tvm.runtime.load_module(str(entry / _LIBRARY))
    exported = tvm.get_global_func("runtime.ModuleLoadStaticLibrary")(str(entry / _OBJECT), names)
    return BuiltFunction(symbol, packed, library, exported)


def _digests(entry: Path) -> dict[str, str]:
    return {name: hashlib.sha256((entry / name).read_bytes()).hexdigest() for name in (_OBJECT, _LIBRARY)}


@functools.cache
def _installation() -> str:
    """Return a digest of TVM's versions, and of when the sources of code generation were changed, whose version stays
    while they do."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    stamps = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    return hashlib.sha256(json.dumps([installed(), stamps]).encode()).hexdigest()
