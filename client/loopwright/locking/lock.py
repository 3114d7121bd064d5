"""A lock file: for each function of some models, the best with which it is compiled. Imports no TVM.

It has the traces and their certificates itself: a file of text that a repository versions, and that cannot come apart
from what it names. Each function is on a line of its own, so a change shows which functions it changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.codegen.versions import TVM_VERSION
from loopwright.errors import first_line
from loopwright.results import evidence

NAME = "loopwright.lock"
FORMAT = 1


class LockedFunction(BaseModel):
    """A function, by the digest of its normalised form. Without a best, it is compiled unscheduled."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload_hash: str
    name: str
    best: schemas.Best | None


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    tvm: str
    target: dict[str, Any]
    keys: tuple[schemas.SigningKey, ...]


class _File(_Head):
    functions: tuple[LockedFunction, ...]


@dataclass(frozen=True)
class Lock:
    """The bests that are pinned for a target."""

    target: dict[str, Any]
    """TVM's target, as its JSON."""
    functions: tuple[LockedFunction, ...]
    """Each function of the models, in order of name."""
    keys: tuple[schemas.SigningKey, ...]
    """The public keys that have signed the certificates."""

    @classmethod
    def of(cls, lock: str | os.PathLike[str] | Lock) -> Lock:
        """Return a lock as it is, and the one in a file (`read`).

        Args:
            lock: the lock, or the path of its file.
        """
        return lock if isinstance(lock, Lock) else cls.read(Path(lock))

    @classmethod
    def read(cls, path: Path) -> Lock:
        """Return the lock in a file, whose certificates were verified.

        Args:
            path: the file.

        Raises:
            ValueError: it is no lock file, or one of a newer version of Loopwright or of another version of TVM.
            WrongCertificate: a best in it is not what its service signed.
        """
        try:
            text = path.read_text(encoding="utf-8")
            fields = json.loads(text)
            form = fields.get("format") if isinstance(fields, dict) else None
            if isinstance(form, int) and form > FORMAT:
                raise ValueError(f"{path} has the form {form}, and this version reads {FORMAT}; upgrade loopwright")
            file = _File.model_validate_json(text, extra="ignore")
        except (ValidationError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{path} is no lock file ({first_line(error)}); write it with 'loopwright lock MODEL'"
            ) from error
        if file.tvm != TVM_VERSION:
            raise ValueError(
                f"{path} is for TVM {file.tvm}, whose traces this version of Loopwright, which needs TVM "
                f"{TVM_VERSION}, cannot read; write it again with 'loopwright lock MODEL'"
            )
        lock = cls(file.target, file.functions, file.keys)
        lock._check(path)
        return lock

    def _check(self, path: Path) -> None:
        known = evidence.by_id(self.keys)
        for each in self.functions:
            if each.best is not None:
                evidence.check_best(each.best, known)
                if (each.best.workload_hash, each.best.target) != (each.workload_hash, self.target):
                    raise ValueError(f"{path} has the best of another function or target for {each.name}")

    def write(self, path: Path) -> None:
        """Write the file. Equal locks become equal bytes.

        Args:
            path: the file.
        """
        head = _Head(tvm=TVM_VERSION, target=self.target, keys=self.keys).model_dump(mode="json")
        lines = [f"{json.dumps(name)}: {signatures.canonical(value)},\n" for name, value in head.items()]
        functions = ",\n".join(signatures.canonical(each.model_dump(mode="json")) for each in self.functions)
        path.write_text(f'{{\n{"".join(lines)}"functions": [\n{functions}\n]\n}}\n', encoding="utf-8")

    @cached_property
    def by_hash(self) -> Mapping[str, LockedFunction]:
        """The functions by their digests."""
        return {each.workload_hash: each for each in self.functions}

    @property
    def digest(self) -> str:
        """SHA-256 of what is pinned."""
        pins = [(each.workload_hash, each.best and each.best.record_id) for each in self.functions]
        return hashlib.sha256(signatures.canonical([self.target, pins]).encode()).hexdigest()

    def answer(self, hashes: Sequence[str]) -> schemas.LookupAnswer:
        """Return what a service would answer that knows these bests and no others.

        Args:
            hashes: workload hashes.
        """
        wanted = list(dict.fromkeys(hashes))
        found = {each: self.by_hash[each].best for each in wanted if each in self.by_hash}
        hits = [schemas.LookupHit(workload_hash=each, best=best, module=None) for each, best in found.items() if best]
        known = {hit.workload_hash for hit in hits}
        return schemas.LookupAnswer(
            target=self.target,
            functions=list(hashes),
            hits=hits,
            misses=[each for each in wanted if each not in known],
        )

    def changes(self, newer: Lock) -> list[str]:
        """Return in words how another lock differs: functions that came, went or have another best, or the target.

        Args:
            newer: the other lock.
        """
        if self.target != newer.target:
            return [f"target: {signatures.canonical(self.target)} is now {signatures.canonical(newer.target)}"]
        said = [f"{each.name}: not locked" for each in newer.functions if each.workload_hash not in self.by_hash]
        for each in self.functions:
            other = newer.by_hash.get(each.workload_hash)
            if other is None:
                said.append(f"{each.name}: no longer used")
            elif _record(each) != _record(other):
                said.append(f"{each.name}: {_record(each)} is now {_record(other)}")
        return said


def _record(function: LockedFunction) -> str:
    return "unscheduled" if function.best is None else f"record {function.best.record_id}"
